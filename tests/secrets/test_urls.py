#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Users and passwords in URLs that weir gets as arguments or finds: the output and the requests of
a crawl, a fetch and a warm-up.

usage: test_urls.py WEIR
"""
import contextlib
import glob
import gzip
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', each) for each in ('cli', 'archive', 'lib')]
import cases  # noqa: E402
from program import weir  # noqa: E402
from small_site import Site  # noqa: E402
from spawner import Spawner  # noqa: E402
from wrong import CANARY  # noqa: E402

SPAWNER = Spawner(sys.argv[1])
USER = f'{CANARY}-user:{CANARY}-word@'
HTML = {'Content-Type': 'text/html'}
QUICK = ['--allow-private', '--pace', 'unlimited']
BAD = [f'http://{USER}[/', f'http://{USER}127.0.0.1:x/', f'http://me:{CANARY}/x@127.0.0.1/', f'http://me:{CANARY}', f'http://me:{"x" * 400}{CANARY}@[/',
       f'http://me:{CANARY}{"x" * 3000}@[/', f'ftp://{USER}127.0.0.1/', f'//{USER}127.0.0.1:y', f'http://{USER}', f'http:\\\\{USER}127.0.0.1:x\\']


def _misplaced(url):
    """Returns commands that get a URL in the place of another argument."""
    return [['hosts', 'show', url], ['report', '--state', url], ['view', url], ['serve', '--config', url], ['serve', '--listen', url, '--config', '/dev/null'],
            ['simulate', url], ['config', 'check', url], ['crawl', '--out', url, 'http://127.0.0.1/'], [url]]


class _Web:
    """Two sites that refer to each other in every possible way, with users and passwords in the
    URLs."""

    def __enter__(self):
        self.sites = [Site(lambda path, fields, i=i: self.answer(i, path)) for i in range(2)]
        for site in self.sites:
            site.__enter__()
        return self

    def __exit__(self, *why):
        for site in self.sites:
            site.__exit__(*why)

    def place(self, i, user=''):
        return f'http://{user}{("127.0.0.1", "localhost")[i]}:{self.sites[i].port}'

    def answer(self, i, path):
        here, there = self.place(i, USER), self.place(1 - i, USER)
        if path == '/robots.txt':
            return 200, {}, f'User-agent: *\nSitemap: {here}/sitemap.xml\nSitemap: {there}/sitemap.xml\nDisallow: /{CANARY}\n'.encode()
        if path == '/sitemap.xml':
            entries = ''.join(f'<url><loc>{place}/listed</loc></url>' for place in (here, there))
            return 200, {'Content-Type': 'application/xml'}, f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'.encode()
        if path.startswith('/to'):
            return 302, {'Location': f'{there if "there" in path else here}/came?from={path[1:]}'}, b''
        if path == '/':
            links = ''.join(f'<a href="{place}/{name}">x</a>' for place in (here, there) for name in ('a', 'to-here', 'to-there'))
            text = f'<html><head><base href="{here}/"><link rel=canonical href="{here}/"><meta http-equiv=refresh content="0;url={there}/meta">{links}'
            return 200, {**HTML, 'Link': f'<{there}/link>; rel=next', 'Refresh': f'0; url={here}/refresh', 'Content-Location': f'{here}/'}, text.encode()
        return 200, HTML, b'<html>nothing more'

    def asked(self):
        return [(i, path, fields) for i, site in enumerate(self.sites) for path, fields in site.asked]


def _discreet(told, what):
    assert CANARY not in told, f'{what}: {[line for line in told.splitlines() if CANARY in line][:5]}'


def _own(archive):
    """Returns a WARC file without the bodies of the responses, which the sites wrote."""
    records = archive.split('WARC/1.1\r\n')
    assert len(records) > 3
    return '\n'.join(record.partition('\r\n\r\n')[0] if 'WARC-Type: response' in record else record for record in records)


def _files(folder):
    """Yields (name, text) of all files in the folder, decompressed."""
    for path in sorted(glob.glob(f'{folder}/**', recursive=True)):
        if os.path.isfile(path):
            with (gzip.open if path.endswith('.gz') else open)(path, 'rb') as file:
                text = file.read().decode('latin-1')
            yield os.path.basename(path), _own(text) if '.warc' in path else text


def _kept(path):
    """Yields the content of each table of a state file, except robots.txt, whose text the sites
    wrote."""
    with contextlib.closing(sqlite3.connect(path)) as state:
        for (table,) in state.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            if 'robots' not in table:
                yield table, str(state.execute(f'SELECT * FROM {table}').fetchall())


def credentials_in_found_urls_are_neither_stored_nor_sent_nor_shown():  # V10
    with _Web() as web, tempfile.TemporaryDirectory() as folder:
        run = weir('crawl', *QUICK, '--scope', 'any', '--sitemaps', '--state', 'state.db', '--out', 'pages.jsonl', '--report', 'report.json', '--log', 'log.txt',
                   '--warc', 'pages.warc.gz', f'{web.place(0)}/', f'{web.place(1)}/', cwd=folder)
        if run.returncode == 2:
            raise AssertionError(run.stderr)
        told = [('crawl', run.stdout + run.stderr)]
        for words in (['hosts', 'list'], ['jobs', 'list'], ['jobs', 'show', '1'], ['why', f'{web.place(0, USER)}/a'], ['report'], ['report', '--json'],
                      ['report', '--html', 'report.html'], ['hosts', 'show', '127.0.0.1']):
            more = weir(*words, '--state', 'state.db', cwd=folder)
            told.append((words, more.stdout + more.stderr))
        told += [(name, text) for name, text in _files(folder) if name != 'state.db']
        for what, text in told:
            _discreet(text, what)
        for table, text in _kept(f'{folder}/state.db'):
            _discreet(text, table)
        assert {path for _, path, _ in web.asked()} >= {'/', '/a', '/to-here', '/to-there', '/came?from=to-there', '/listed'}, web.asked()
        for i, path, fields in web.asked():
            assert 'Authorization' not in fields and CANARY not in str((path, fields)).replace(f'/{CANARY}', ''), (i, path, fields)


class _Crawl:
    """A crawl through a proxy, with every kind of secret; its last response waits until `may_go` is
    set."""

    def __init__(self, folder):
        self.folder, self.asked, self.may_go = folder, threading.Event(), threading.Event()
        self.proxy = Site(self.answer)

    def answer(self, path, _fields):
        if path.endswith('/wait'):
            self.asked.set()
            self.may_go.wait(60)
        return 200, HTML, b'' if path.endswith('/robots.txt') else b'<a href=/wait>x</a><a href="http://127.0.0.1/">x</a>'

    def __enter__(self):
        self.proxy.__enter__()
        with open(f'{self.folder}/said', 'w', encoding='utf-8') as file:
            self.process = subprocess.Popen([os.path.abspath(sys.argv[1]), 'crawl', *QUICK, '--scope', 'any', '--header', f'Authorization: Bearer {CANARY}',
                                             f'--proxy=http://me:{CANARY}@127.0.0.1:{self.proxy.port}', '--listen', '127.0.0.1:0', '--report', 'report.json', '--log', 'log',
                                             '--warc', 'pages.warc.gz', 'http://localhost/'], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        return self

    def __exit__(self, *_):
        self.may_go.set()
        self.process.kill()
        self.process.wait()
        self.proxy.__exit__()

    def get(self, path):
        with open(f'{self.folder}/said', encoding='utf-8') as file:
            place = re.search(r'http://127\.0\.0\.1:\d+/', file.read())[0]
        with urllib.request.urlopen(place + path, timeout=60) as answer:
            told = b''
            while not told.endswith(b'\n\n') or b'event: view' not in told:
                more = answer.readline()
                told += more
                if not more:
                    break
        return told.decode()


def running_crawl_shows_none_of_its_secrets():  # V10
    with tempfile.TemporaryDirectory() as folder, _Crawl(folder) as crawl:
        assert crawl.asked.wait(60)
        with open(f'/proc/{crawl.process.pid}/cmdline', 'rb') as file:
            told = [('cmdline', file.read().decode())]
        told += [(path, crawl.get(path)) for path in ('metrics', 'healthz', *(f'panel/stream?view={view}' for view in ('overview', 'hosts', 'jobs', 'host&name=localhost')))]
        for words in (['hosts', 'list', '--json'], ['hosts', 'show', 'localhost'], ['jobs', 'show', '1', '--json'], ['why', 'http://localhost/wait', '--json']):
            run = weir(*words, cwd=folder)
            assert run.returncode == 0, run
            told.append((words, run.stdout + run.stderr))
        crawl.may_go.set()
        assert crawl.process.wait(60) in (0, 1)
        for what, text in [*told, *_files(folder), *_kept(f'{folder}/weir.db')]:
            _discreet(text, what)
        asked = [(path, fields.get('Authorization'), 'Proxy-Authorization' in fields)
                 for path, fields in crawl.proxy.asked]
        assert {path for path, own, _ in asked if own} == {'http://localhost/', 'http://localhost/wait'}, asked
        assert all(known for _, _, known in asked) and 'http://127.0.0.1/' in {path for path, _, _ in asked}, asked


def credentials_of_a_url_are_sent_only_to_its_origin():  # V10
    with _Web() as web, tempfile.TemporaryDirectory() as folder:
        run = weir('fetch', *QUICK, '--out', 'out.jsonl', '--state', 'fetch.state', f'{web.place(0, USER)}/a', f'{web.place(0, USER)}/to-there', *BAD, cwd=folder)
        _discreet(run.stdout + run.stderr, 'fetch')
        for name, text in _files(folder):
            _discreet(text, name)
        sent = {(i, path): 'Authorization' in fields for i, path, fields in web.asked() if path != '/robots.txt'}
        assert sent == {(0, '/a'): True, (0, '/to-there'): True, (1, '/came?from=to-there'): False}, sent
        assert not any('Authorization' in fields for _, path, fields in web.asked() if path == '/robots.txt')


def refused_urls_are_reported_without_their_credentials():  # V10
    with tempfile.TemporaryDirectory() as folder:
        with open(f'{folder}/list', 'w', encoding='utf-8') as file:
            file.write('\n'.join(BAD) + '\n')
        for url in [*BAD, f'http://{USER}127.0.0.1/']:
            for words in (['crawl', url], ['crawl', '--dry-run', url], ['warm', url], ['warm', '--sitemap', url], ['robots', 'show', url], ['robots', 'check', url, url],
                          ['url', url], ['headers', url], ['guard', url], ['why', url], *(_misplaced(url) if '@' in url and '://' in url else [])):
                run = SPAWNER.run(*words, cwd=folder)
                assert run.returncode != 0 or words[0] in ('url', 'guard'), (words, run)
                answers = words[0] in ('url', 'guard')  # these print their arguments
                _discreet(run.stderr if answers else run.stdout + run.stderr, words)
        for words in (['crawl', '--seeds-file', 'list'], ['fetch', '--urls-file', 'list'], ['warm', '--urls-file', 'list']):
            run = weir(*words, cwd=folder)
            _discreet(run.stdout + run.stderr, words)


if __name__ == '__main__':
    with SPAWNER:
        cases.main()
