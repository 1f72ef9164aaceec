# SPDX-License-Identifier: MIT
"""A small site on nginx, and runs of weir crawl in a temporary folder. The first argument is the
program."""
import collections
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', '..', 'cli'), os.path.join(HERE, '..', 'client')]

import cases  # noqa: E402
from nginx import PATIENCE_S, SLACK_S, Door, Nginx, Tls, free_port  # noqa: E402

PAGES = 40


def read_head(file):
    """Returns the lines of a request head; [] if the connection ended before the head."""
    lines = []
    while (line := file.readline()) and (line := line.rstrip(b'\r\n')):
        lines.append(line)
    return lines


def page(number):
    """Returns a page with links to five others; every page can be reached."""
    links = ''.join(f'<a href="/p{(number * 3 + k) % PAGES}.html">x</a>' for k in range(5))
    return f'<title>Page {number}</title>{links}'


def site(server='', http='', **more):
    files = {f'p{number}.html': page(number) for number in range(PAGES)}
    files['index.html'] = '<title>Home</title><a href="p0.html">pages</a>'
    files.update(more)
    return Nginx(server, http, files=files)


def all_of(nginx):
    """Returns the URLs of all pages."""
    return {f'{nginx.url}/'} | {f'{nginx.url}/p{number}.html' for number in range(PAGES)}


class Folder(tempfile.TemporaryDirectory):
    """A folder for crawls: with Folder() as folder: folder.crawl(url) …"""

    def __enter__(self):
        super().__enter__()
        return self

    def command(self, *words):
        return [os.path.abspath(sys.argv[1]), 'crawl', '--allow-private', *words]

    def crawl(self, *words, **more):
        more.setdefault('stdin', None if 'input' in more else subprocess.DEVNULL)
        return subprocess.run(self.command(*words), cwd=self.name, capture_output=True, text=True,
                              timeout=more.pop('timeout', PATIENCE_S), **more)

    def begin(self, *words, **more):
        return subprocess.Popen(self.command(*words), cwd=self.name, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **more)

    def path(self, name):
        return os.path.join(self.name, name)

    def read(self, name):
        with open(self.path(name), encoding='utf-8') as file:
            return file.read()

    def write(self, name, text):
        with open(self.path(name), 'w', encoding='utf-8') as file:
            file.write(text)

    def lines(self, name='crawl.jsonl'):
        return [json.loads(line) for line in self.read(name).splitlines()]

    def by_url(self, name='crawl.jsonl'):
        """Returns {url: its line}; no URL may have two lines."""
        lines = self.lines(name)
        found = {line['url']: line for line in lines}
        assert len(found) == len(lines), collections.Counter(line['url'] for line in lines).most_common(3)
        return found

    def await_quiet(self, nginx):
        """Waits until the running crawl has no request to the site in flight."""
        end, key = time.monotonic() + PATIENCE_S, nginx.url.removeprefix('http://')
        while True:
            run = subprocess.run([os.path.abspath(sys.argv[1]), 'hosts', 'show', key, '--json'], cwd=self.name, capture_output=True,
                                 stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=True)
            if json.loads(run.stdout)['host']['in_flight'] == 0:
                return
            assert time.monotonic() < end, run
            time.sleep(0.05)

    def await_lines(self, count, name='crawl.jsonl'):
        """Waits until the file has at least this many lines."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if os.path.exists(self.path(name)) and self.read(name).count('\n') >= count:
                return
            time.sleep(0.05)
        raise AssertionError('no lines')


class Held(Door):
    """with site() as nginx, Held(nginx, 5) as held, Folder() as folder: … The site delivers this
    many pages to a crawl. It holds the other requests back until the crawl is told to stop, and
    then delivers those in flight."""

    def __init__(self, nginx, pages):
        super().__init__(nginx, pages + 1)  # plus robots.txt
        self.pages = pages

    def begin(self, folder, *words, out='crawl.jsonl'):
        """Starts a crawl and returns it when it has fetched these pages."""
        process = folder.begin(*words, self.url)
        folder.await_lines(self.pages, out)
        return process

    def stop(self, process, number=signal.SIGINT):
        """Sends the signal and waits for the end."""
        process.send_signal(number)
        heard = process.stderr.readline()
        while 'finishing the requests in flight' not in heard:
            assert process.poll() is None or heard, 'the crawl has ended'
            heard += process.stderr.readline()
        self.let_on()
        out, errors = process.communicate(timeout=PATIENCE_S)
        return process.returncode, out, heard + errors


def interrupt(process, number=signal.SIGINT):
    """Sends the signal and waits for the end."""
    process.send_signal(number)
    out, errors = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out, errors


__all__ = ['PAGES', 'PATIENCE_S', 'SLACK_S', 'Door', 'Folder', 'Held', 'Nginx', 'Tls', 'all_of', 'cases', 'free_port', 'interrupt', 'page', 'read_head', 'site']
