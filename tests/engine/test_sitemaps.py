#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests weir crawl --sitemaps of a site on a real nginx, judged by nginx's log. The first argument is the program."""
import collections
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'cli'), os.path.join(HERE, '..', 'net', 'client')]

import cases  # noqa: E402
from killed import kill_some  # noqa: E402
from nginx import Nginx  # noqa: E402
from program import weir  # noqa: E402

XML = '<?xml version="1.0" encoding="UTF-8"?>'


# AddressSanitizer keeps freed memory for a while, in a quarantine that is made small here.
LEAN = dict(os.environ, ASAN_OPTIONS=os.environ.get('ASAN_OPTIONS', '') + ':quarantine_size_mb=4')


def _peak_memory(process):
    """Returns the peak memory of the process in MB."""
    with open(f'/proc/{process}/status', encoding='utf-8') as file:
        return next((int(line.split()[1]) >> 10 for line in file if line.startswith('VmHWM')), 0)


def _urlset(urls):
    return f'{XML}<urlset>{"".join(f"<url><loc>{url}</loc></url>" for url in urls)}</urlset>'


def _index(urls):
    return f'{XML}<sitemapindex>{"".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)}</sitemapindex>'


class Site:
    """A site whose pages no link leads to, and a folder for weir. Sitemaps are written when the address is known."""

    def __init__(self, pages):
        self.nginx = Nginx('', '', {'index.html': 'home', **{f'p{n}.html': f'page {n}' for n in range(pages)}},
                           everywhere=True)

    def __enter__(self):
        self.nginx.__enter__()
        self.url = self.nginx.url
        self.files = tempfile.TemporaryDirectory(prefix='weir-sitemaps-')
        self.folder = self.files.name
        return self

    def __exit__(self, *why):
        self.files.cleanup()
        self.nginx.__exit__(*why)

    def write(self, name, text):
        with open(f'{self.nginx.folder}/www/{name}', 'wb') as file:
            file.write(gzip.compress(text.encode()) if name.endswith('.gz') else text.encode())

    def words(self, *words):
        return ['crawl', '--quiet', '--state', f'{self.folder}/weir.db', *words]

    def begin(self, *words):
        return self.words('--out', f'{self.folder}/out', '--allow-private', '--pace', 'unlimited', '--sitemaps', *words,
                          self.url + '/')

    def lines(self, out='out'):
        """Returns {path: line}; no URL may have two lines."""
        with open(f'{self.folder}/{out}', encoding='utf-8') as file:
            lines = [json.loads(line) for line in file]
        by_path = {line['url'].removeprefix(self.url): line for line in lines}
        assert len(by_path) == len(lines)
        return by_path

    def asked(self):
        return [path for _, _, path, *_ in self.nginx.log()]


def pages_that_only_a_sitemap_lists_are_fetched():
    """S4-19: robots.txt names an index of plain and gzipped sitemaps. The home page is fetched first."""
    with Site(20) as site:
        site.write('robots.txt', f'User-agent: *\nDisallow: /p3.html\nSitemap: {site.url}/all.xml\n')
        site.write('all.xml', _index([f'{site.url}/a.xml', f'{site.url}/b.xml.gz']))
        site.write('a.xml', _urlset(f'{site.url}/p{n}.html' for n in range(10)))
        site.write('b.xml.gz', _urlset(f'{site.url}/p{n}.html' for n in range(8, 20)))
        run = weir(*site.begin())
        lines, asked = site.lines(), site.asked()
        assert run.returncode == 0, run
        assert set(lines) == {'/', '/all.xml', '/a.xml', '/b.xml.gz', *(f'/p{n}.html' for n in range(20))}, lines
        assert lines['/p3.html']['verdict'] == 'robots' and '/p3.html' not in asked
        assert asked[:3] == ['/robots.txt', '/', '/all.xml'], asked
        assert sorted(asked) == sorted({*lines, '/robots.txt'} - {'/p3.html'}), asked  # each path once
        assert lines['/p0.html']['referrer'] == site.url + '/a.xml' and lines['/a.xml']['referrer'] is None
        again = weir(*site.words('--recrawl', '--out', f'{site.folder}/again'))
        assert again.returncode == 0, again
        verdicts = collections.Counter(line['verdict'] for line in site.lines('again').values())
        assert verdicts == {'unchanged': len(lines) - 1, 'robots': 1}, verdicts


def default_sitemap_is_tried_and_may_be_absent():
    with Site(2) as site:
        assert weir(*site.begin()).returncode == 0
        lines = site.lines()
        assert set(lines) == {'/', '/sitemap.xml'} and lines['/sitemap.xml']['verdict'] == 'absent', lines
        site.write('sitemap.xml', _urlset([f'{site.url}/p1.html']))
        again = weir(*site.words('--recrawl', '--out', f'{site.folder}/again'))
        assert again.returncode == 0 and set(site.lines('again')) == {'/', '/sitemap.xml', '/p1.html'}, again


def sitemap_linked_from_the_first_page_is_read_as_a_sitemap():
    with Site(2) as site:
        site.write('index.html', '<a href="/sitemap.xml">site map</a> <a href="/p0.html">page</a>')
        site.write('sitemap.xml', _urlset([f'{site.url}/p1.html']))
        run = weir(*site.begin())
        assert run.returncode == 0 and set(site.lines()) == {'/', '/sitemap.xml', '/p0.html', '/p1.html'}, site.lines()


def pages_of_sitemaps_have_depth_1_however_indexes_are_nested():
    with Site(3) as site:
        site.write('sitemap.xml', _index([f'{site.url}/flat.xml', f'{site.url}/inner.xml']))
        site.write('flat.xml', _urlset([f'{site.url}/p0.html']))
        site.write('inner.xml', _index([f'{site.url}/innermost.xml']))
        site.write('innermost.xml', _urlset([f'{site.url}/p1.html']))
        run = weir(*site.begin('--depth', '1'))
        lines = site.lines()
        assert run.returncode == 0 and {'/p0.html', '/p1.html'} <= set(lines), (run, lines)
        assert lines['/p0.html']['depth'] == lines['/p1.html']['depth'] == 1, lines


def nested_sitemaps_are_followed_to_a_limited_depth():
    """D9: each index lists another one, endlessly."""
    with Site(0) as site:
        site.write('robots.txt', f'Sitemap: {site.url}/0.xml\n')
        for n in range(9):
            site.write(f'{n}.xml', _index([f'{site.url}/{n + 1}.xml']))
        run = weir(*site.begin())
        lines = site.lines()
        assert run.returncode == 0 and set(lines) == {'/', '/0.xml', '/1.xml', '/2.xml', '/3.xml'}, (run, lines)
        assert 'nested too deep' in lines['/3.xml']['error_text'] and lines['/2.xml']['error_text'] is None, lines


def index_of_too_many_sitemaps_is_truncated_and_reported():
    """D9: robots.txt forbids the sitemaps, so that the test need not fetch ten thousand."""
    with Site(0) as site:
        site.write('robots.txt', f'User-agent: *\nDisallow: /s\nSitemap: {site.url}/index.xml\n')
        site.write('index.xml', _index(f'{site.url}/s{n}.xml' for n in range(10123)))
        run = weir(*(word for word in site.begin() if word != '--quiet'))
        lines = site.lines()
        assert len(lines) == 1 + 10000 and len(site.asked()) == 3, (len(lines), run)
        assert 'skipped: 124 sitemaps, nested too deep or too many per host\n' in run.stdout, run


def sitemaps_obey_the_scope_like_links():
    """B12: pages and sitemaps of other hosts are followed only if the scope includes them."""
    with Site(3) as site:
        other = site.url.replace('127.0.0.1', '127.0.0.2')
        site.write('robots.txt', f'Sitemap: {other}/theirs.xml\nSitemap: /ours.xml\nSitemap: file:///etc/passwd\n')
        site.write('theirs.xml', _urlset([f'{site.url}/p0.html']))
        site.write('ours.xml', _urlset([f'{site.url}/p1.html', f'{other}/p2.html', 'ftp://a.example/', '/p.jpg']))
        run = weir(*site.begin())
        assert run.returncode == 0 and set(site.lines()) == {'/', '/ours.xml', '/p1.html'}, (run, site.lines())
        run = weir(*site.words('--out', f'{site.folder}/any', '--allow-private', '--pace', 'unlimited', '--sitemaps',
                               '--scope', 'any', site.url + '/'))
        assert {'/p0.html', '/p1.html', f'{other}/theirs.xml', f'{other}/p2.html'} <= set(site.lines('any'))


def budget_holds_while_a_sitemap_is_read():
    """D9: the crawl takes no more of 100 000 URLs than its budget allows."""
    with Site(0) as site:
        site.write('sitemap.xml', _urlset(f'{site.url}/{n}.html' for n in range(100000)))
        run = weir(*site.begin('--max-pages', '50'))
        assert run.returncode == 1, run  # the pages do not exist
        lines = site.lines()
        assert len(lines) == 50 and len(site.asked()) == 51, len(lines)
        whole = os.path.getsize(f'{site.nginx.folder}/www/sitemap.xml')
        assert lines['/sitemap.xml']['bytes'] < whole / 2, lines['/sitemap.xml']  # the rest was not read
        assert lines['/sitemap.xml']['verdict'] == 'fetched', lines['/sitemap.xml']  # it was not too large


def pages_are_fetched_while_a_gzip_bomb_is_read():
    """D9: a gzip bomb of XML does not delay the pages."""
    with Site(10) as site:
        site.write('robots.txt', f'Sitemap: {site.url}/bomb.xml.gz\n')
        site.write('bomb.xml.gz', _urlset(f'{site.url}/p{n % 10}.html' for n in range(300_000)))
        run = weir(*site.begin())
        order = list(site.lines())
        assert run.returncode == 0 and len(order) == 12, (run, order)
        assert order.index('/bomb.xml.gz') > 1, order


def sitemaps_that_arrive_faster_than_they_are_read_take_little_memory():
    """V6, D9: 48 sitemaps of 16 MB with 50 000 entries each, and an output that is not read: the servers must wait."""
    count = 48
    with Site(0) as site:
        www = f'{site.nginx.folder}/www'
        os.mkdir(f'{www}/0')
        entries = ''.join(f'<url><loc>p{n}</loc></url>{" " * 300}' for n in range(50_000))
        site.write('0/s.xml', f'{XML}<urlset>{entries}</urlset>')
        for n in range(1, count):
            os.symlink('0', f'{www}/{n}')
        site.write('robots.txt', ''.join(f'Sitemap: {site.url}/{n}/s.xml\n' for n in range(count)))
        os.mkfifo(f'{site.folder}/out')
        unread = os.open(f'{site.folder}/out', os.O_RDONLY | os.O_NONBLOCK)
        with subprocess.Popen([os.path.abspath(sys.argv[1]), *site.begin('--append')], env=LEAN) as crawl:
            most, since = 0, time.monotonic()
            while time.monotonic() < since + 4 and crawl.poll() is None:  # until it has not grown for 4 s
                time.sleep(0.1)
                now = _peak_memory(crawl.pid)
                if now > most + 2:
                    most, since = now, time.monotonic()
            ended = crawl.poll()
            crawl.kill()
        os.close(unread)
        print(f'{most} MB')
        assert ended is None and most < 350, (ended, most)


def hostile_sitemaps_end():
    """D9: a sitemap that lists itself, one that is not XML, one with a document type: their lines report it."""
    with Site(1) as site:
        site.write('robots.txt', ''.join(f'Sitemap: {site.url}/{name}\n' for name in ('me.xml', 'no.xml', 'type.xml')))
        site.write('me.xml', _index([f'{site.url}/me.xml', f'{site.url}/me.xml#2', '/no.xml']))
        site.write('no.xml', '<html><body><a href="/p0.html">no</a>')
        site.write('type.xml', '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><urlset><url><loc>/&b;</loc></url>')
        run = weir(*site.begin())
        lines = site.lines()
        assert run.returncode == 0 and set(lines) == {'/', '/me.xml', '/no.xml', '/type.xml'}, (run, lines)
        assert 'document type' in lines['/type.xml']['error_text'] and lines['/me.xml']['error_text'] is None


def crawl_that_is_killed_while_it_reads_sitemaps_loses_nothing():
    with Site(400) as site:
        site.write('sitemap.xml', _urlset(f'{site.url}/p{n}.html' for n in range(400)))
        kill_some(site.begin('--global-rate', '60'), site.words('--resume'), site.folder, 'out', 1)
        run = weir(*site.words('--resume', '--global-rate', '100000'))
        assert run.returncode == 0 and len(site.lines()) == 402, (run, len(site.lines()))


if __name__ == '__main__':
    cases.main()
