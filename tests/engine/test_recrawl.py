#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir crawl --recrawl of a site on a real nginx, judged by nginx's log. The first argument is the program."""
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
    """A tree of links, the first at /0.html, and a folder for weir."""

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
        """What became of each URL: {path: line}. No URL has two lines."""
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
        """[(path, status, bytes)] since it was asked last."""
        self.nginx.log()  # waits until all is written
        with open(f'{self.nginx.folder}/sizes.log', encoding='utf-8') as file:
            rows = [line.split() for line in file][self.read:]
        self.read += len(rows)
        return [(path, int(status), int(size)) for path, status, size in rows]

    def diff(self, name='diff'):
        with open(f'{self.folder}/{name}', encoding='utf-8') as file:
            rows = [json.loads(line) for line in file]
        return [(row['change'], row['url'].removeprefix(self.nginx.url)) for row in rows]

    def age(self, days):
        """As if all that has ended so far were so much longer ago."""
        with sqlite3.connect(f'{self.folder}/weir.db') as db:
            for name in ('ended_at_ms', 'since_ms', 'visited_at_ms'):
                db.execute(f'UPDATE tasks SET {name} = {name} - ? WHERE {name} > 0', [days * DAY_MS])
        db.close()


def _verdicts(lines):
    return collections.Counter(line['verdict'] for line in lines.values())


def pages_that_have_not_changed_cost_a_304_each():
    """U11: at most a third of the bytes, on the wire; every page has its line."""
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


def archive_of_the_first_job_goes_on_in_a_file_of_the_next_number():
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
        assert run.returncode == 2 and 'exists already' in run.stderr, run  # a name that is given now is a new archive
        run = weir(*site.words('--recrawl', '--out', f'{site.folder}/first'))
        assert run.returncode == 2 and 'first exists already' in run.stderr, run
        run = weir(*site.words('--recrawl', '--resume'))
        assert run.returncode == 2 and 'give one of them' in run.stderr, run


def new_changed_and_gone_pages_are_listed():
    """U11, S4-19: and what is the same to the byte has not changed, whatever its ETag says."""
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
        assert site.diff() == [], site.diff()  # against the second one
        assert _verdicts(third) == {'unchanged': PAGES, 'failed': 1}, _verdicts(third)


def recrawl_that_is_killed_and_resumed_loses_nothing():
    """U11, B12: at any moment, among them while the earlier job is being read."""
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


def pages_that_are_not_likely_to_have_changed_are_not_asked_for():
    """U11: how often a page changes is learned; what nothing is known of is asked for after some days."""
    with Site() as site:
        site.first()
        site.log()
        _, again = site.crawl('again', '--recrawl', '--due')
        asked = [path for path, _, _ in site.log() if path != '/robots.txt']
        assert asked == ['/0.html'], asked  # where it began
        assert _verdicts(again) == {'not_due': PAGES - 1, 'unchanged': 1}, _verdicts(again)
        site.age(6)
        site.write('9.html', site.page(9, 'more'))
        _, again = site.crawl('third', '--recrawl', '--due')
        assert _verdicts(again) == {'unchanged': PAGES - 1, 'fetched': 1}, _verdicts(again)
        site.age(5)  # twice as long unchanged: not due; 9.html has changed once
        _, again = site.crawl('fourth', '--recrawl', '--due')
        assert sorted(path for path, line in again.items() if line['verdict'] != 'not_due') == ['/0.html', '/9.html']


def clock_that_was_wrong_makes_no_page_due_for_ever_or_never():
    """H1, H2: visits in years to come, in the seventies, and later today."""
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
    """One with a sitemap that says of some pages when they changed."""

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
    """So many days from now."""
    return time.strftime(form, time.gmtime(time.time() + days * 86400))


def pages_whose_sitemap_says_that_they_have_changed_are_due():
    """U11: also if the first page leads to them before it is read; a date before our visit says nothing new."""
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
        assert site.asked() == ['/0.html', '/200.html', '/sitemap.xml'], _verdicts(again)  # one that always has changed just now
        site.write('sitemap.xml', '<urlset></urlset>')
        site.age(20)
        run, again = site.crawl('fourth', '--recrawl', '--due')
        assert site.asked() == sorted(first), 'nothing is put off because a sitemap does not name it'


def what_a_sitemap_said_outlives_a_kill():
    """U11, B12: at any moment; no page is lost, none has two lines, and none is visited that is not due."""
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


def what_can_not_be_visited_again_is_said():
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
