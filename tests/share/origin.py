# SPDX-License-Identifier: MIT
"""A web server with a limit, which knows from the kernel when each request arrived."""
import os
import re
import socket
import sys
import threading
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))

import stamp  # noqa: E402


class Bucket:
    """Replies with 429 beyond `rate` requests per second and `burst` at once."""

    def __init__(self, rate, burst):
        self.rate, self.burst, self.tokens, self.at = rate, burst, burst, 0

    def __call__(self, at, _path):
        self.tokens = min(self.burst, self.tokens + max(at - self.at, 0) * self.rate)
        self.at = max(at, self.at)
        if self.tokens < 1:
            return 429, ''
        self.tokens -= 1
        return 200, ''


class Origin:
    """`answer(at, path)` returns a status and further header lines. The log has (time, path,
    status, user agent) in order. Requests to /robots.txt get 404 and are not logged."""

    def __init__(self, answer, delay=0, address='127.0.0.1'):
        self.answer, self.delay = answer, delay
        self.lock, self.log = threading.Lock(), []
        self.listener = stamp.listen(address=address)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def url(self, path):
        return f'http://127.0.0.1:{self.port}/{path}'

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=[connection], daemon=True).start()

    def serve(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while self.one(connection):
                pass
        except OSError:
            pass
        connection.close()

    def one(self, connection):
        head, at = b'', None
        while b'\r\n\r\n' not in head:
            data, came_at = stamp.receive(connection)
            if not data:
                return False
            at = at or came_at
            head += data
        path = head.split(b' ')[1].decode()
        who = re.search(rb'\r\n[Uu]ser-[Aa]gent: *([^\r]*)', head)
        if path == '/robots.txt':
            status, fields = 404, ''
        else:
            with self.lock:
                status, fields = self.answer(at, path)
                self.log.append((at, path, status, who[1].decode() if who else ''))
        if self.delay:
            time.sleep(self.delay)
        connection.sendall(f'HTTP/1.1 {status} X\r\nContent-Length: 2\r\n{fields}\r\nok'.encode())
        return True

    def gaps(self):
        times = sorted(entry[0] for entry in self.log)
        return [b - a for a, b in zip(times, times[1:])]

    def judge_gaps(self, interval_s):
        stamp.judge(self.gaps(), interval_s)
