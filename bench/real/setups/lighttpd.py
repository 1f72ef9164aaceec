# SPDX-License-Identifier: MIT
"""lighttpd: at most N connections; later ones wait for a place. (Debian's has no mod_evasive any more.)"""
from rig.setup import Server, Setup, flight

CONF = '''server.modules = ("mod_proxy")
server.document-root = "@folder@"
server.errorlog = "@folder@/error.log"
server.bind = "127.0.0.1"
server.port = @port@
server.max-keep-alive-requests = 1000000
server.max-keep-alive-idle = 60
%s
proxy.server = ("" => (("host" => "127.0.0.1", "port" => @origin@)))
'''


def lighttpd(lines):
    return Server(files={'lighttpd.conf': CONF % lines}, words=('lighttpd', '-D', '-f', '@folder@/lighttpd.conf'),
                  needs=('command -v lighttpd',))


SETUPS = [
    Setup('lighttpd-conn-5', lighttpd('server.max-connections = 5'), flight(5, 220), (), latency_ms=220,
          traits=('connections', 'silent')),
]
