#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir crawl --recrawl of a site on a real nginx, judged by nginx's log. The first argument is the program."""
import collections
import gzip
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'cli'), os.path.join(HERE, '..', 'net', 'client')]

import cases  # noqa: E402
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

    def jobs(self):
        with sqlite3.connect(f'{self.folder}/weir.db') as db:
            count = db.execute('SELECT count(*) FROM jobs').fetchone()[0]
        db.close()
        return count

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
        assert run.returncode == 2 and 'is there already' in run.stderr, run  # a name that is given now is a new archive
        run = weir(*site.words('--recrawl', '--out', f'{site.folder}/first'))
        assert run.returncode == 2 and 'first is there already' in run.stderr, run
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
        words = ['--recrawl', '--global-rate', '200', '--diff', f'{site.folder}/diff']
        resumed = 0
        command = site.words('--out', f'{site.folder}/again', *words)
        for wait in (0.15, 0.3, 0.4, 0.4):
            process = subprocess.Popen([os.path.abspath(sys.argv[1]), *command], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(wait)
            process.send_signal(signal.SIGKILL)
            process.wait()
            if site.jobs() > 1:  # else it had not begun
                command = site.words('--resume')
                resumed += 1
        assert resumed > 0
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
