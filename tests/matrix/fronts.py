# SPDX-License-Identifier: MIT
"""The proxies with the configuration files of contrib/, each in front of all services."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'serve')]

import proxies  # noqa: E402
from nginx import free_port  # noqa: E402
from proxies import SERVICE, SOCKET, contrib  # noqa: E402


class _Sites:
    """Common part of the proxies below: ports[name] leads to services[name], and so does
    http2_ports[name]; without TLS a proxy needs a separate port for HTTP/2."""

    def __init__(self, daemon, services):
        super().__init__(daemon, next(iter(services.values())))
        self.daemon, self.services = daemon, services
        self.ports = dict(zip(services, [self.port] + [free_port() for _ in services][1:]))
        self.http2_ports = {name: free_port() for name in services}

    def port_of(self, service, is_http2):
        return (self.http2_ports if is_http2 else self.ports)[service]

    def texts(self, file, changes):
        """Yields the configuration for each service. `changes(name, port)` returns further
        replacements."""
        for name, port in self.ports.items():
            yield contrib(file, {SOCKET: self.daemon.path, SERVICE: f'127.0.0.1:{self.services[name].port}',
                                 **changes(name, port), **(self.waits if file != 'haproxy/haproxy.cfg' else {})})


class Nginx(_Sites, proxies.NginxFront):
    def words(self):
        texts = self.texts('nginx/weir.conf', lambda name, port: {
            'listen 80;': f'listen 127.0.0.1:{port}; listen 127.0.0.1:{self.http2_ports[name]} http2;',
            'upstream weir {': f'upstream weir_{name} {{', 'http://weir/': f'http://weir_{name}/',
            'upstream service {': f'upstream service_{name} {{', 'http://service;': f'http://service_{name};'})
        return self.words_for('\n'.join(texts))


class Haproxy(_Sites, proxies.HaproxyFront):
    def words(self):
        head, sites = '', []
        for text in self.texts('haproxy/haproxy.cfg', lambda name, port: {
                '/etc/haproxy/weir.lua': self.script(),
                'bind :80': f'bind 127.0.0.1:{port}\n    bind 127.0.0.1:{self.http2_ports[name]} proto h2',
                'frontend www\n': f'frontend www_{name}\n', 'backend service\n': f'backend service_{name}\n'}):
            head, _, site = text.partition('\nfrontend ')
            sites.append(site)
        return self.words_for('\nfrontend '.join([head, *sites]))


class Caddy(_Sites, proxies.CaddyFront):
    def words(self):
        self.options = '\n'.join(f'servers 127.0.0.1:{port} {{\n\tprotocols h1 h2c\n}}' for port in self.http2_ports.values())
        return self.words_for('\n'.join(self.texts('caddy/Caddyfile', lambda name, port: {
            ':80 {': f'http://:{port}, http://:{self.http2_ports[name]} {{\n\tbind 127.0.0.1'})))


FRONTS = {'nginx': Nginx, 'haproxy': Haproxy, 'caddy': Caddy}
