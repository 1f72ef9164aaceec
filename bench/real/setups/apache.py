# SPDX-License-Identifier: MIT
"""Apache with mod_evasive and mod_qos, in one process, because mod_evasive counts in each process
separately."""
from rig.setup import Server, Setup, flight, rate, window

CONF = '''
ServerRoot @folder@
PidFile @folder@/pid
ErrorLog @folder@/error.log
LogLevel emerg
ServerName localhost
Listen 127.0.0.1:@port@
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule setenvif_module /usr/lib/apache2/modules/mod_setenvif.so
LoadModule reqtimeout_module /usr/lib/apache2/modules/mod_reqtimeout.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
LoadModule %s /usr/lib/apache2/modules/%s.so
StartServers 1
ServerLimit 1
ThreadLimit 128
ThreadsPerChild 128
MaxRequestWorkers 128
KeepAlive On
KeepAliveTimeout 60
MaxKeepAliveRequests 0
Timeout 60
%s
ProxyPass / http://127.0.0.1:@origin@/
'''


# mod_qos of Debian 12 needs the old libpcre, but its package does not say so.
PCRE = {'LD_PRELOAD': 'libpcre.so.3'}


def apache(symbol, file, lines):
    return Server(files={'apache.conf': CONF % (symbol, file, '\n'.join(lines))},
                  words=('apache2', '-X', '-f', '@folder@/apache.conf'), env=PCRE,
                  needs=('command -v apache2', f'ls /usr/lib/apache2/modules/{file}.so'))


def evasive(site, interval_s, block_s):
    return apache('evasive20_module', 'mod_evasive20', [
        'DOSHashTableSize 3097', 'DOSPageCount 100000', 'DOSPageInterval 1', f'DOSSiteCount {site}', f'DOSSiteInterval {interval_s}',
        f'DOSBlockingPeriod {block_s}', 'DOSLogDir @folder@'])


def qos(*lines):
    return apache('qos_module', 'mod_qos', lines)


def qos_block(most, seconds):
    """The last of `most` requests is refused already, and the seconds are whole seconds of the
    clock."""
    return qos('QS_ClientEntries 1000', f'QS_ClientEventBlockCount {most} {seconds}', 'SetEnvIf Request_URI ^/ QS_Block=yes')


SETUPS = [
    Setup('evasive-20', evasive(20, 1, 10), window(20, 1), (403,), ban_s=10, traits=('ban', 'prolonged')),
    Setup('evasive-8', evasive(8, 1, 30), window(8, 1), (403,), ban_s=30, traits=('ban', 'prolonged')),
    Setup('qos-flight-4', qos('QS_LocRequestLimit / 4'), flight(4, 220), (500,), latency_ms=220, traits=('flight', '500')),
    Setup('qos-block-100', qos_block(100, 20), rate(5, 0, 0.012), (500,), ban_s=20, traits=('ban', '500')),
    Setup('qos-conn-4', qos('QS_SrvMaxConnPerIP 4'), flight(4, 220), (500, 503), latency_ms=220, traits=('connections',)),
    Setup('qos-delay-10', qos('QS_LocRequestPerSecLimit / 10'), window(10, 1), (500,), traits=('slow-down',)),
]
