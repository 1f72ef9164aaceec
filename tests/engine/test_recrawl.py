#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests weir crawl --recrawl of a site on a real nginx, judged by nginx's log. The first argument is the program."""
import collections
import gzip
import json
import os
import sqlite3
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'cli'), os.path.join(HERE, '..', 'net', 'client')]

import cases  # noqa: E402
from killed import kill_some  # noqa: E402
from nginx import Nginx  # noqa: E402
from program import weir  # noqa: E402

PAGES = 300
HTTP = "log_format sizes '$request_uri $status $bytes_sent';"
SERVER = 'access_log sizes.log sizes;'
DAY_MS = 86400 * 1000


class Site:
    """A site with a tree of links, whose first page is /0.html, and a folder for weir."""

    def __enter__(self):
        self.nginx = Nginx(SERVER, HTTP, {f'{n}.html': self.page(n) for n in range(PAGES)}).__enter__()
        self.files = tempfile.TemporaryDirectory(prefix='weir-recrawl-')
        self.folder = self.files.name
        self.read = 0
        return self

    def __exit__(self, *why):
        self.files.cleanup()
        self.nginx.__exit__(*why)

    @staticmethod
    def page(n, more=''):
        links = ''.join(f'<a href="/{m}.html">x</a>' for m in (2 * n + 1, 2 * n + 2) if m < PAGES)
        return f'<title>{n}</title>{links}{"text " * 300}{more}'

    def write(self, name, text):
        with open(f'{self.nginx.folder}/www/{name}', 'w', encoding='utf-8') as file:
            file.write(text)

    def words(self, *words):
        return ['crawl', '--quiet', '--state', f'{self.folder}/weir.db', *words]

    def crawl(self, out, *words):
        """Crawls the site. Returns the finished run and {path: line}; no URL may have two lines."""
        run = weir(*self.words('--out', f'{self.folder}/{out}', *words))
        return run, self.lines(out)

    def first(self):
        return self.crawl('first', '--allow-private', '--pace', 'unlimited', self.nginx.url + '/0.html')[1]

    def lines(self, out):
        with open(f'{self.folder}/{out}', encoding='utf-8') as file:
            lines = [json.loads(line) for line in file]
        by_path = {line['url'].removeprefix(self.nginx.url): line for line in lines}
        assert len(by_path) == len(lines), collections.Counter(line['url'] for line in lines).most_common(3)
        return by_path

    def log(self):
        """Returns [(path, status, bytes)] of the requests since the last call."""
        self.nginx.log()  # waits until the log is complete
        with open(f'{self.nginx.folder}/sizes.log', encoding='utf-8') as file:
            rows = [line.split() for line in file][self.read:]
        self.read += len(rows)
        return [(path, int(status), int(size)) for path, status, size in rows]

    def diff(self, name='diff'):
        with open(f'{self.folder}/{name}', encoding='utf-8') as file:
            rows = [json.loads(line) for line in file]
        return [(row['change'], row['url'].removeprefix(self.nginx.url)) for row in rows]

    def age(self, days):
        """Moves all visits in the state file into the past by this number of days."""
        with sqlite3.connect(f'{self.folder}/weir.db') as db:
            for name in ('ended_at_ms', 'since_ms', 'visited_at_ms'):
                db.execute(f'UPDATE tasks SET {name} = {name} - ? WHERE {name} > 0', [days * DAY_MS])
        db.close()


def _verdicts(lines):
    return collections.Counter(line['verdict'] for line in lines.values())


def unchanged_pages_cost_a_304_each():
    """U11: the recrawl transfers at most a third of the bytes, and every page has a line."""
    with Site() as site:
        first = site.first()
        before = site.log()
        run, again = site.crawl('again', '--recrawl', '--diff', f'{site.folder}/diff')
        after = [row for row in site.log() if row[0] != '/robots.txt']
        assert run.returncode == 0, run
        assert set(again) == set(first) and len(again) == PAGES
        assert _verdicts(again) == {'unchanged': PAGES}, _verdicts(again)
        assert sorted(path for path, _, _ in after) == sorted(first), after
        assert {status for _, status, _ in after} == {304}
        assert 3 * sum(size for _, _, size in after) <= sum(size for _, _, size in before)
        assert site.diff() == []
        for path, line in again.items():
            same = ('depth', 'referrer', 'digest')
            assert [line[key] for key in same] == [first[path][key] for key in same], (line, first[path])


def recrawl_continues_the_archive_in_the_next_file():
    with Site() as site:
        archive = f'{site.folder}/mine'
        site.crawl('first', '--allow-private', '--pace', 'unlimited', '--warc', archive, site.nginx.url + '/0.html')
        size = os.path.getsize(f'{archive}-00000.warc.gz')
        run, again = site.crawl('again', '--recrawl')
        assert run.returncode == 0 and _verdicts(again) == {'unchanged': PAGES}, run
        assert os.path.getsize(f'{archive}-00000.warc.gz') == size
        with gzip.open(f'{archive}-00001.warc.gz') as file:
            assert file.read().count(b'WARC-Type: revisit') == PAGES
        run = weir(*site.words('--recrawl', '--out', f'{site.folder}/more', '--warc', archive))
        assert run.returncode == 2 and 'exists already' in run.stderr, run  # --warc starts a new archive
        run = weir(*site.words('--recrawl', '--out', f'{site.folder}/first'))
        assert run.returncode == 2 and 'first exists already' in run.stderr, run
        run = weir(*site.words('--recrawl', '--resume'))
        assert run.returncode == 2 and 'give one of them' in run.stderr, run


def new_changed_and_gone_pages_are_listed():
    """U11, S4-19: a page with the same bytes is unchanged, even if its ETag differs."""
    with Site() as site:
        site.first()
        site.write('3.html', site.page(3, 'more'))
        site.write('4.html', site.page(4, '<a href="/new.html">new</a>'))
        site.write('new.html', 'new')
        os.remove(f'{site.nginx.folder}/www/299.html')
        os.utime(f'{site.nginx.folder}/www/5.html', (0, 0))
        site.log()
        run, again = site.crawl('again', '--recrawl', '--diff', f'{site.folder}/diff')
        asked = {path: status for path, status, _ in site.log()}
        assert run.returncode == 1, run  # one page failed
        assert sorted(site.diff()) == [('changed', '/3.html'), ('changed', '/4.html'), ('gone', '/299.html'),
                                       ('new', '/new.html')], site.diff()
        assert _verdicts(again) == {'unchanged': PAGES - 3, 'fetched': 3, 'failed': 1}, _verdicts(again)
        assert asked['/5.html'] == 200 and again['/5.html']['verdict'] == 'unchanged'
        assert again['/new.html']['depth'] == again['/4.html']['depth'] + 1
        site.log()
        _, third = site.crawl('third', '--recrawl', '--diff', f'{site.folder}/diff')
        assert site.diff() == [], site.diff()  # compared with the second crawl
        assert _verdicts(third) == {'unchanged': PAGES, 'failed': 1}, _verdicts(third)


def recrawl_that_is_killed_and_resumed_loses_nothing():
    """U11, B12: the kills come at various moments, also while the earlier job is being read."""
    with Site() as site:
        site.first()
        site.write('7.html', site.page(7, 'more'))
        os.remove(f'{site.nginx.folder}/www/298.html')
        site.log()
        words = ['--recrawl', '--global-rate', '60', '--diff', f'{site.folder}/diff']
        command = site.words('--out', f'{site.folder}/again', *words)
        kill_some(command, site.words('--resume'), site.folder, 'again', 2)
        run = weir(*site.words('--resume', '--global-rate', '100000'))
        again = site.lines('again')
        assert run.returncode == 1, run
        assert _verdicts(again) == {'unchanged': PAGES - 2, 'fetched': 1, 'failed': 1}, _verdicts(again)
        assert site.diff() == [('changed', '/7.html'), ('gone', '/298.html')], site.diff()
        assert {status for path, status, _ in site.log() if path not in ('/7.html', '/298.html', '/robots.txt')} == {304}


def pages_that_are_unlikely_to_have_changed_are_not_requested():
    """U11: weir learns how often a page changes. A page without history is due after some days."""
    with Site() as site:
        site.first()
        site.log()
        _, again = site.crawl('again', '--recrawl', '--due')
        asked = [path for path, _, _ in site.log() if path != '/robots.txt']
        assert asked == ['/0.html'], asked  # the seed is always fetched
        assert _verdicts(again) == {'not_due': PAGES - 1, 'unchanged': 1}, _verdicts(again)
        site.age(6)
        site.write('9.html', site.page(9, 'more'))
        _, again = site.crawl('third', '--recrawl', '--due')
        assert _verdicts(again) == {'unchanged': PAGES - 1, 'fetched': 1}, _verdicts(again)
        site.age(5)  # unchanged pages are due after twice the time; 9.html has changed once
        _, again = site.crawl('fourth', '--recrawl', '--due')
        assert sorted(path for path, line in again.items() if line['verdict'] != 'not_due') == ['/0.html', '/9.html']


def wrong_clock_makes_no_page_due_always_or_never():
    """H1, H2: the stored visits are years in the future, in the seventies, or later today."""
    with Site() as site:
        site.first()
        every = sorted(f'/{n}.html' for n in range(PAGES))
        for days in (-4000, -30, 20000):
            site.age(days)
            for name, later, due in (('wrong', 0, every), ('right', 0, ['/0.html']), ('later', 6, every)):
                site.age(later)
                site.log()
                site.crawl(f'{name}{days}', '--recrawl', '--due')
                asked = sorted(path for path, _, _ in site.log() if path != '/robots.txt')
                assert asked == due, (days, name, len(asked))
        site.age(-0.5)
        site.crawl('today', '--recrawl', '--due')
        assert [path for path, _, _ in site.log() if path != '/robots.txt'] == ['/0.html']


class Listed(Site):
    """A site with a sitemap that has the change dates of some pages."""

    def list(self, dates):
        rows = ''.join(f'<url><loc>{self.nginx.url}/{n}.html</loc>{f"<lastmod>{day}</lastmod>" if day else ""}</url>'
                       for n, day in dates.items())
        self.write('sitemap.xml', f'<urlset>{rows}</urlset>')

    def first(self):
        self.list({n: None for n in range(PAGES)})
        return self.crawl('first', '--allow-private', '--pace', 'unlimited', '--sitemaps', self.nginx.url + '/0.html')[1]

    def asked(self):
        return sorted(path for path, _, _ in self.log() if path != '/robots.txt')


def _day(days, form='%Y-%m-%dT%H:%M:%SZ'):
    """Returns the date this number of days from now."""
    return time.strftime(form, time.gmtime(time.time() + days * 86400))


def pages_with_a_newer_date_in_the_sitemap_are_due():
    """U11: also if the first page links to them before the sitemap is read. A date before the last visit has no effect."""
    with Listed() as site:
        first = site.first()
        assert _verdicts(first) == {'fetched': PAGES + 1}, _verdicts(first)
        site.age(3)
        site.list({n: None for n in range(PAGES)} | {
            2: _day(-2), 150: _day(-1), 3: _day(-4), 200: _day(400), 201: _day(-3, '%Y-%m-%d'), 202: _day(-6, '%Y-%m-%d'),
            203: 'yesterday', 204: '2026'})
        site.write('0.html', site.page(0, 'it leads to 1 and 2, which are judged as soon as they can be'))
        site.log()
        run, again = site.crawl('again', '--recrawl', '--due')
        assert run.returncode == 0, run
        due = sorted(['/0.html', '/sitemap.xml'] + [f'/{n}.html' for n in (2, 150, 200, 201)])
        assert site.asked() == due
        assert _verdicts(again) == {'not_due': PAGES - 5, 'unchanged': 4, 'fetched': 2}, _verdicts(again)
        run, again = site.crawl('third', '--recrawl', '--due')
        assert site.asked() == ['/0.html', '/200.html', '/sitemap.xml'], _verdicts(again)  # its date is always in the future
        site.write('sitemap.xml', '<urlset></urlset>')
        site.age(20)
        run, again = site.crawl('fourth', '--recrawl', '--due')
        assert site.asked() == sorted(first), 'a page that the sitemap does not list must still become due'


def dates_of_a_sitemap_survive_a_kill():
    """U11, B12: after kills at various moments no page is lost, has two lines, or is visited without being due."""
    with Listed() as site:
        site.first()
        site.age(3)
        due = set(range(1, PAGES, 3))
        site.list({n: _day(-1) if n in due else _day(-5) for n in range(PAGES)})
        site.write('0.html', site.page(0, 'more'))
        site.log()
        command = site.words('--out', f'{site.folder}/again', '--recrawl', '--due', '--global-rate', '15')
        kill_some(command, site.words('--resume'), site.folder, 'again', 2)
        run = weir(*site.words('--resume', '--global-rate', '100000'))
        assert run.returncode == 0, run
        again = site.lines('again')
        assert set(site.asked()) == {f'/{n}.html' for n in due} | {'/0.html', '/sitemap.xml'}
        assert _verdicts(again) == {'not_due': PAGES - len(due) - 1, 'unchanged': len(due), 'fetched': 2}, _verdicts(again)


def impossible_recrawl_is_refused_with_the_reason():
    with Site() as site:
        for words, why in ((['--recrawl'], 'there is no state file'), (['--due', 'a.example'], 'give --recrawl'),
                           (['--diff', 'x', 'a.example'], 'give --recrawl'), (['--job', '3', 'a.example'], '--recrawl')):
            run = weir(*site.words(*words))
            assert run.returncode == 2 and why in run.stderr, run
            assert not os.path.exists(f'{site.folder}/weir.db')
        site.first()
        run = weir(*site.words('--recrawl', '--job', '7'))
        assert run.returncode == 2 and 'there is no job 7' in run.stderr, run


if __name__ == '__main__':
    cases.main()
