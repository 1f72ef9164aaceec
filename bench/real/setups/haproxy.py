# SPDX-License-Identifier: MIT
"""HAProxy: rates in stick tables, connections, queues."""
from rig.setup import Server, Setup, flight, window

CONF = '''
global
    maxconn 2000
    nbthread 1
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    timeout http-keep-alive 60s
    timeout queue 1s
    timeout tarpit 5s
frontend front
    bind 127.0.0.1:@port@
    %s
    default_backend back
backend back
    server origin 127.0.0.1:@origin@ %s
%s
'''


def haproxy(rules, server='', more=''):
    lines = '\n    '.join(rules)
    return Server(files={'haproxy.cfg': CONF % (lines, server, more)}, words=('haproxy', '-db', '-f', '@folder@/haproxy.cfg'),
                  needs=('command -v haproxy',))


def request_rate(most, seconds, action):
    """Refused requests count towards the limit as well."""
    return haproxy([f'stick-table type ip size 1k expire {max(60, 2 * seconds)}s store http_req_rate({seconds}s)',
                    'http-request track-sc0 src', f'http-request {action} if {{ sc0_http_req_rate gt {most} }}'])


# Only the request that starts a ban is tracked in the table of bans, because tracking prolongs a
# ban.
BAN = ['http-request deny deny_status 403 if { src,table_gpc0(bans) gt 0 }', 'http-request track-sc0 src table rates',
       'http-request track-sc1 src table bans if { sc0_http_req_rate gt 80 }',
       'http-request sc-inc-gpc0(1) if { sc0_http_req_rate gt 80 }',
       'http-request deny deny_status 403 if { sc0_http_req_rate gt 80 }']
BAN_TABLES = '''backend rates
    stick-table type ip size 1k expire 60s store http_req_rate(10s)
backend bans
    stick-table type ip size 1k expire 30s store gpc0
'''

SETUPS = [
    Setup('haproxy-rate-429', request_rate(100, 10, 'deny deny_status 429'), window(100, 10), traits=('refused-count',)),
    Setup('haproxy-rate-tarpit', request_rate(100, 10, 'tarpit'), window(100, 10), (500,), traits=('refused-count', 'tarpit')),
    Setup('haproxy-rate-silent', request_rate(100, 10, 'silent-drop'), window(100, 10), (), traits=('refused-count', 'silent')),
    Setup('haproxy-rate-reject', request_rate(100, 10, 'reject'), window(100, 10), (), traits=('refused-count', 'reset')),
    Setup('haproxy-rate-1s', request_rate(12, 1, 'deny deny_status 429'), window(12, 1), traits=('refused-count',)),
    Setup('haproxy-rate-retry', request_rate(120, 20, 'return status 429 hdr Retry-After 3'), window(120, 20),
          traits=('refused-count', 'retry-after')),
    Setup('haproxy-ban-403', haproxy(BAN, more=BAN_TABLES), window(80, 10), (403,), ban_s=30, traits=('ban',)),
    Setup('haproxy-queue', haproxy([], 'maxconn 4'), flight(4, 220), (503,), latency_ms=220, short=True, traits=('queue', 'flight')),
    Setup('haproxy-conn-4', haproxy(['tcp-request connection track-sc0 src', 'stick-table type ip size 1k expire 60s store conn_cur',
                                     'tcp-request connection reject if { sc0_conn_cur gt 4 }']),
          flight(4, 220), (), latency_ms=220, traits=('connections', 'reset')),
]
