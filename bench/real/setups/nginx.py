# SPDX-License-Identifier: MIT
"""nginx: limit_req and limit_conn."""
from rig.setup import Limit, Server, Setup, flight, rate

CONF = '''
worker_processes 1; daemon off; master_process off; pid @folder@/pid; error_log @folder@/error.log crit;
events { worker_connections 1024; }
http {
    client_body_temp_path @folder@/a; proxy_temp_path @folder@/b; fastcgi_temp_path @folder@/c;
    uwsgi_temp_path @folder@/d; scgi_temp_path @folder@/e;
    access_log off; keepalive_requests 1000000; keepalive_timeout 75s;
    upstream origin { server 127.0.0.1:@origin@; keepalive 64; }
    %s
    server {
        listen 127.0.0.1:@port@;
        location / { %s proxy_http_version 1.1; proxy_set_header Connection ""; proxy_pass http://origin; }
        %s
    }
}
'''


def nginx(zones, location, more=''):
    return Server(files={'nginx.conf': CONF % (zones, location, more)},
                  words=('nginx', '-p', '@folder@', '-c', '@folder@/nginx.conf'), needs=('command -v nginx',))


def limit_req(a_rate, words='', status=503, more='', location=''):
    zone = f'limit_req_zone $binary_remote_addr zone=a:1m rate={a_rate};'
    return nginx(zone, f'limit_req zone=a {words}; limit_req_status {status}; {location}', more)


def limit_conn(most, status):
    return nginx('limit_conn_zone $binary_remote_addr zone=c:1m;', f'limit_conn c {most}; limit_conn_status {status};')


TWO_ZONES = ('limit_req_zone $binary_remote_addr zone=a:1m rate=20r/s; limit_req_zone $binary_remote_addr zone=b:1m rate=240r/m;')
WAIT_5 = 'location @wait { add_header Retry-After 5 always; return 429; }'

SETUPS = [
    Setup('nginx-10', limit_req('10r/s'), rate(10), (503,), short=True, traits=('bucket',)),
    Setup('nginx-10-nodelay', limit_req('10r/s', 'burst=20 nodelay', 429), rate(10, 20), short=True, traits=('bucket',)),
    Setup('nginx-10-delay', limit_req('10r/s', 'burst=20'), rate(10, 20), (503,), short=True, traits=('queue',)),
    Setup('nginx-30m', limit_req('30r/m', 'burst=5 nodelay', 429), rate(0.5, 5), traits=('bucket', 'slow')),
    Setup('nginx-conn-4', limit_conn(4, 503), flight(4, 220), (503,), latency_ms=220, short=True, traits=('flight',)),
    Setup('nginx-conn-10-429', limit_conn(10, 429), flight(10, 600), latency_ms=600, traits=('flight',)),
    Setup('nginx-two', nginx(TWO_ZONES, 'limit_req zone=a burst=10 nodelay; limit_req zone=b burst=40 nodelay; limit_req_status 429;'),
          rate(4, 40), traits=('bucket', 'two')),
    Setup('nginx-retry-5', limit_req('5r/s', 'burst=10 nodelay', 429, WAIT_5, 'error_page 429 @wait;'), rate(5, 10),
          traits=('bucket', 'retry-after')),
    Setup('nginx-10-delay-5', limit_req('10r/s', 'burst=15 delay=5', 429), rate(10, 15), traits=('queue',)),
    Setup('nginx-2-444', limit_req('4r/s', 'burst=8 nodelay', 444), rate(4, 8), refused=(), traits=('bucket', 'reset')),
    Setup('nginx-conn-and-req', nginx(
        'limit_conn_zone $binary_remote_addr zone=c:1m; limit_req_zone $binary_remote_addr zone=a:1m rate=12r/s;',
        'limit_conn c 6; limit_req zone=a burst=12 nodelay; limit_conn_status 429; limit_req_status 429;'),
        Limit(12, 12, 6), latency_ms=150, traits=('bucket', 'flight')),
]
