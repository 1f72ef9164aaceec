# SPDX-License-Identifier: MIT
"""Counts the calls of a crawl per page: to the kernel, to malloc, and to the server. No times."""
import collections
import os
import re
import socket
import subprocess
import tempfile
import threading

LINKS = 35
WORDS = 'A weir lets through what the river below can bear, and no more than that. ' * 4
# The cost of one page is the difference of two crawls, which removes the cost of a crawl without
# pages.
FEW, MANY = 200, 600
FEW_MALLOCS, MANY_MALLOCS = 500, 3000

# The number of these calls depends on timing: waiting, waking, committing several results together.
TIMED = {'epoll_wait', 'epoll_pwait', 'poll', 'ppoll', 'futex', 'sched_yield', 'read', 'write', 'timerfd_settime', 'pread64',
         'pwrite64', 'fsync', 'fdatasync', 'ftruncate', 'fcntl', 'newfstatat', 'fstat', 'stat', 'clock_nanosleep',
         'restart_syscall', 'getrusage', 'clock_gettime', 'sched_setscheduler'}


def _page(number, pages):
    """A page of about 12 KB; its links lead to the next page and to earlier ones."""
    links = [min(number + 1, pages - 1)] + [number * link // LINKS for link in range(1, LINKS)]
    text = ''.join(f'<p>{WORDS}<a class="link" href="/page/{link:06}">page {link:06}</a></p>\n' for link in links)
    return f'<!doctype html><html><head><title>Page {number}</title></head>\n<body>\n{text}</body></html>\n'


class Server:
    """Serves one connection at a time; every response is one write, and every request is counted.
    """

    def __init__(self, pages):
        self.pages, self.requests, self.connections = pages, 0, 0
        self.socket = socket.create_server(('127.0.0.1', 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection):
        data = b''
        while True:
            while b'\r\n\r\n' not in data:
                more = connection.recv(65536)
                if not more:
                    connection.close()
                    return
                data += more
            head, data = data.split(b'\r\n\r\n', 1)
            self.requests += 1
            found = re.match(rb'GET /page/(\d+) ', head)
            status, body = ('200 OK', _page(int(found[1]), self.pages)) if found else ('404 Not Found', '')
            connection.sendall(f'HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n{body}'
                               .encode())

    def close(self):
        self.socket.close()


def crawl(weir, pages, before, environment):
    """Crawls this number of pages, each linked from the one before. Returns the server, which has
    counted the requests."""
    server = Server(pages)
    with tempfile.TemporaryDirectory(prefix='weir-ledger-') as folder:
        subprocess.run([*before, weir, 'crawl', '--allow-private', '--pace', 'unlimited', '--loops', '1', '--concurrency', '1',
                        '--depth', '0', '--quiet', '--state', f'{folder}/weir.db', '--out', f'{folder}/out.jsonl',
                        f'http://127.0.0.1:{server.port}/page/000000'],
                       env={'PATH': os.environ['PATH'], **environment}, check=True, cwd=folder, timeout=120)
    server.close()
    return server


def _system_calls(weir, pages):
    """Returns the calls that do not depend on timing, and the requests."""
    with tempfile.TemporaryDirectory(prefix='weir-ledger-') as folder:
        server = crawl(weir, pages, ['strace', '-f', '-c', '-o', f'{folder}/calls'], {})
        with open(f'{folder}/calls', encoding='ascii') as file:
            rows = [line.split() for line in file if re.match(r' *[\d.]+ +[\d.]+ ', line)]
    return sum(int(row[3]) for row in rows if row[-1] not in TIMED | {'total'}), server.requests


def _mallocs(weir, counter, pages):
    with tempfile.TemporaryDirectory(prefix='weir-ledger-') as folder:
        crawl(weir, pages, [], {'LD_PRELOAD': counter, 'WEIR_LEDGER_COUNT': f'{folder}/count'})
        with open(f'{folder}/count', encoding='ascii') as file:
            return int(file.read())


def figures(weir, counter):
    """Returns the figures per page."""
    few, many = _system_calls(weir, FEW), _system_calls(weir, MANY)
    mallocs = _mallocs(weir, counter, MANY_MALLOCS) - _mallocs(weir, counter, FEW_MALLOCS)
    return {'page_requests': (many[1] - few[1]) / (MANY - FEW), 'page_calls': (many[0] - few[0]) / (MANY - FEW),
            'page_mallocs': mallocs / (MANY_MALLOCS - FEW_MALLOCS)}
