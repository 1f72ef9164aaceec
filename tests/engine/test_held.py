#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests weir crawl and fetch against hosts whose few bytes cause much work: a loop must run its timers every 5 ms, or the
watchdog ends the program (WEIR_TEST_WATCHDOG, src/http/loop/watchdog.h). The first argument is the program."""
import gzip
import json
import os
import socket
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'cli')]

import cases  # noqa: E402
from program import weir  # noqa: E402

MB = 1 << 20
XML = b'<?xml version="1.0" encoding="UTF-8"?>'
NOTHING = b'HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n'


def _answer(body, kind=b'text/html', fields=b''):
    return b'HTTP/1.1 200 OK\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n%s' % (kind, fields, len(body), body)


def _each(form, count):
    return b''.join(form % number for number in range(count))


def _chunked(rest):
    return b'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n' + rest


def _packed(body):
    return _answer(gzip.compress(body, 1), fields=b'Content-Encoding: gzip\r\n')


# Responses to a page.
PAGES = {
    'attributes': lambda: _answer(b'<a ' + _each(b'a%d=1 ', 10**6) + b'>'),
    'tags without an end': lambda: _answer(b'<a' * (15 * MB)),
    'links to as many names of other scripts': lambda: _answer(_each('<a href="http://ä%d{}.example/">'.format('ß' * 20).encode(), 20000)),
    'as many links as are read': lambda: _answer(_each(b'<a href="/%d">', 20000)),
    'links that are long and lead up and down': lambda: _answer(_each(b'<a href="/' + b'../a/./' * 200 + b'%d">', 2000)),
    'a chunk for each byte': lambda: _chunked(b'1\r\nx\r\n' * 10**6 + b'0\r\n\r\n'),
    'a trailer without an end': lambda: _chunked(b'0\r\n' + b'a: b\r\n' * 10**6),
    'fields': lambda: b'HTTP/1.1 200 OK\r\n' + _each(b'field-%d: yyyyyyyy\r\n', 9000) + b'Content-Length: 0\r\n\r\n',
    'interim responses': lambda: b'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n' * 10**5,
    'tags that are packed': lambda: _packed(b'<a' * (15 * MB)),
    'members that hold nothing': lambda: _answer(gzip.compress(b'') * 10**5, fields=b'Content-Encoding: gzip\r\n'),
}
CROWD = 32  # number of hosts that all respond at the same time


def _crowd(hosts):
    page = _chunked(b'1\r\nx\r\n' * 10**5 + b'0\r\n\r\n')
    return [hosts.add({'/': lambda: page}) for _ in range(CROWD)]


# Responses to robots.txt.
RULES = {
    'groups': lambda: _answer(_each(b'User-agent: b%d\nDisallow: /\n', 40000), b'text/plain'),
    'a group of many': lambda: _answer(b'User-agent: *\n' * 36000 + b'Disallow: /x\n', b'text/plain'),
    'escapes': lambda: _answer(b'User-agent: *\n' + ('Disallow: /' + 'ä%e4' * 20 + '\n').encode() * 4000, b'text/plain'),
    'wildcards': lambda: _answer(b'User-agent: *\n' + _each(b'Disallow: *a*a*a*a*a*a*a*a%d\n', 16000), b'text/plain'),
}


def _sitemap(entries, url, size):
    return XML + b'<urlset>' + b''.join(b'<url><loc>%s%0*d</loc></url>' % (url, size, number) for number in range(entries)) + b'</urlset>'


# Responses to a sitemap of a site at `url`.
SITEMAPS = {
    'long entries': lambda url: _answer(_sitemap(30000, url, 1000)),
    'entries that are packed': lambda url: _answer(gzip.compress(_sitemap(100000, url, 1), 1)),
    'references': lambda url: _answer(XML + b'<urlset><url><loc>' + b'&amp;' * (2 * MB)),
    'references that are packed': lambda url: _answer(gzip.compress(XML + b'<urlset><url><loc>' + b'&amp;' * (2 * MB))),
    'attributes': lambda url: _answer(XML + b'<urlset ' + _each(b'a%d="1" ', 10**6)),
}


class Hosts:
    """A server at every 127.x.y.z; each host has its own response to each path."""

    def __init__(self):
        self.answers = {}
        self.socket = socket.create_server(('0.0.0.0', 0), backlog=500)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def add(self, answers):
        """Adds a host and returns its URL. `answers` maps a path to a function that returns the response."""
        host = f'127.0.0.{len(self.answers) + 1}'
        self.answers[host] = answers
        return f'http://{host}:{self.port}/'

    def _accept(self):
        try:
            while True:
                threading.Thread(target=self._serve, args=(self.socket.accept()[0],), daemon=True).start()
        except OSError:
            pass  # the socket was closed

    def _serve(self, peer):
        try:
            with peer, peer.makefile('rb') as file:
                while (line := file.readline()):
                    head = {name.strip().lower(): value.strip() for name, _, value in
                            (field.decode().partition(':') for field in iter(file.readline, b'\r\n'))}
                    make = self.answers[head['host'].partition(':')[0]].get(line.split()[1].decode())
                    peer.sendall(make() if make else NOTHING)
        except OSError:
            pass  # the client has read enough


def _crawl(words, seeds):
    """Returns {URL: line}. If a loop was blocked, the watchdog ended weir by a signal, and this fails."""
    with tempfile.TemporaryDirectory(prefix='weir-held-') as folder:
        run = weir('crawl', '--quiet', '--state', 'weir.db', '--out', 'out', '--allow-private', '--pace', 'unlimited', '--attempts', '1',
                   '--depth', '1', '--host-pages', '200', *words, *seeds, cwd=folder, timeout=150)
        assert run.returncode in (0, 1), (run.returncode, run.stderr)
        with open(f'{folder}/out', encoding='utf-8') as lines:
            return {line['url']: line for line in map(json.loads, lines)}


def pages_of_hostile_hosts_block_no_loop_of_a_crawl():  # M12, N1-2
    with Hosts() as hosts:
        seeds = {hosts.add({'/': make}): name for name, make in PAGES.items()}
        lines = _crawl(('--loops', '1'), [*seeds, *_crowd(hosts)])
        for url, name in seeds.items():
            assert url in lines, name


def rules_of_hostile_hosts_block_no_loop_of_a_crawl():  # M12, N1-2
    with Hosts() as hosts:
        seeds = [hosts.add({'/robots.txt': make, '/': lambda: _answer(_each(b'<a href="/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/%d">', 100))})
                 for make in RULES.values()]
        lines = _crawl(('--loops', '1'), seeds)
        assert all(url in lines for url in seeds), lines


def sitemaps_of_hostile_hosts_block_no_loop_of_a_crawl():  # M12, N1-2
    with Hosts() as hosts:
        seeds = []
        for make in SITEMAPS.values():
            answers = {'/': lambda: _answer(b'home')}
            url = hosts.add(answers)
            answers['/sitemap.xml'] = lambda make=make, url=url: make(url.encode())
            seeds.append(url)
        lines = _crawl(('--loops', '1', '--sitemaps'), seeds)
        assert all(f'{url}sitemap.xml' in lines for url in seeds), list(lines)[:20]


def pages_of_hostile_hosts_block_no_loop_of_a_client():  # M12, N1-2
    with Hosts() as hosts:
        urls = [hosts.add({'/': make}) for make in PAGES.values()]
        run = weir('fetch', '--quiet', '--allow-private', '--pace', 'unlimited', '--attempts', '1', *urls, *_crowd(hosts),
                   timeout=150)
        assert run.returncode in (0, 1), (run.returncode, run.stderr)


if __name__ == '__main__':
    cases.main()
