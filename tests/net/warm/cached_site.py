# SPDX-License-Identifier: MIT
"""A site behind a cache, both real nginx on loopback, and runs of weir warm. The first argument is
the program."""
import collections
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', '..', 'cli'), os.path.join(HERE, '..', 'client')]

import cases  # noqa: E402
from nginx import Nginx, free_port  # noqa: E402
from program import refusal, weir  # noqa: E402

SLACK_S = 0.1  # nginx logs the time of the response, which is late on a busy machine

HTTP = '''proxy_cache_path cache keys_zone=pages:1m; log_format origin '$request_method $request_uri';
    log_format hosts '$host $request_uri $http_x_test';
    server {{ listen 127.0.0.1:{port}; access_log origin.log origin; root www; }}'''
CACHE = '''proxy_pass http://127.0.0.1:{port}; proxy_cache pages; proxy_cache_valid 404 1m;
    add_header X-Cache-Status $upstream_cache_status always;'''
SERVER = '''access_log access.log times; access_log hosts.log hosts;
    location / {{ {cache} proxy_cache_valid 200 10m; }}
    location ^~ /private/ {{ {cache} proxy_cache_bypass 1; proxy_no_cache 1; }}
    location ^~ /short/ {{ {cache} proxy_cache_valid 200 1s; }}
    location ^~ /never/ {{ {cache} proxy_no_cache 1; }}
    location = /robots.txt {{ }} location ~ /(map|sitemap|feed)[^/]*$ {{ }} {server}'''


class Site(Nginx):
    """with Site(pages=20) as site: … Pages /0 … are cached; sitemaps and robots.txt are not."""

    def __init__(self, pages=0, files=None, server=''):
        port = free_port()
        cache = CACHE.format(port=port)
        self.paths = [f'/{n}' for n in range(pages)]
        all_files = {'index.html': 'home', **{f'{n}': f'page {n}' for n in range(pages)}, **(files or {})}
        super().__init__(SERVER.format(cache=cache, server=server), HTTP.format(port=port), all_files)

    def write(self, name, text):
        with open(f'{self.folder}/www/{name}', 'wb') as file:
            file.write(text if isinstance(text, bytes) else text.encode())

    def list(self, paths=None, name='sitemap.xml'):
        """Writes a sitemap of these paths, or of all pages."""
        self.write(name, urlset(f'{self.url}{path}' for path in (self.paths if paths is None else paths)))

    def warm(self, *words, unlimited=True, **more):
        """Returns ({url: its line}, the report, the run)."""
        pace = ('--pace', 'unlimited') if unlimited else ()
        with tempfile.TemporaryDirectory() as folder:
            run = weir('warm', '--allow-private', *pace, '--out', f'{folder}/out', '--report', f'{folder}/report',
                       *(words or (self.url,)), **more)
            with open(f'{folder}/out', encoding='ascii') as file:
                lines = [json.loads(line) for line in file]
            with open(f'{folder}/report', encoding='ascii') as file:
                text = file.read()
        found = {line['url']: line for line in lines}
        assert len(found) == len(lines), lines
        return found, json.loads(text) if text else None, run

    def asked(self):
        """Returns {path: [methods in order]}."""
        found = collections.defaultdict(list)
        for _, method, path, *_ in self.log():
            found[path].append(method)
        return dict(found)

    def origin_asked(self):
        """Returns [(method, path)] of the requests of the cache to the origin."""
        return self._words('origin.log')

    def hosts_asked(self):
        """Returns [(host, path, X-Test)]."""
        return self._words('hosts.log')

    def _words(self, name):
        self.log()  # waits until the logs are complete
        with open(f'{self.folder}/{name}', encoding='utf-8') as file:
            return [tuple(line.split()) for line in file]


def urlset(urls):
    entries = ''.join(f'<url><loc>{url.replace("&", "&amp;")}</loc></url>' for url in urls)
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'


def index(urls):
    entries = ''.join(f'<sitemap><loc>{url}</loc></sitemap>' for url in urls)
    return f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</sitemapindex>'


__all__ = ['SLACK_S', 'Site', 'cases', 'free_port', 'index', 'refusal', 'urlset', 'weir']
