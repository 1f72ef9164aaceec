# SPDX-License-Identifier: MIT
"""Proxies with the unchanged files of contrib/, in front of a real service. Only addresses and
paths are replaced, and the proxy's timeouts for weir, unless a test is about them."""
import collections
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CONTRIB = os.path.join(HERE, '..', '..', 'contrib')
sys.path[:0] = [os.path.join(HERE, '..', 'net', 'client')]

from daemon import PATIENCE_S, Daemon  # noqa: E402
from nginx import Nginx, free_port  # noqa: E402

SOCKET = '/run/weir/weir.sock'
SERVICE = '127.0.0.1:8080'


def service():
    """Returns the protected service; its log shows which requests were admitted."""
    return Nginx(server='location / { return 200 "served"; } location /own403 { return 403; } location /own500 { return 500; }')


def contrib(name, changes):
    """Returns a file of contrib/ with replaced addresses. Every text to replace must be there."""
    with open(os.path.join(CONTRIB, name), encoding='utf-8') as file:
        text = file.read()
    for old, new in changes.items():
        assert old in text, f'{name} has no {old!r}'
        text = text.replace(old, new)
    return text


class Front:
    """A proxy in a temporary folder. `is_open`: admits every request while weir does not answer.
    `over_tcp`: asks weir over TCP. `as_written`: keeps the timeouts of the file, which may be
    too short on a busy machine."""

    name = ''
    patience = {}  # timeouts in the file, and their replacements
    before = ''  # prefix of the path of a Unix socket

    def __init__(self, daemon, behind, is_open=False, over_tcp=False, as_written=False):
        self.port = free_port()
        place = {self.before + SOCKET: f'127.0.0.1:{daemon.port}'} if over_tcp else {SOCKET: daemon.path}
        self.waits = {} if as_written else self.patience
        self.changes = {**place, SERVICE: f'127.0.0.1:{behind.port}'}
        self.is_open = is_open
        self.folder = tempfile.mkdtemp(prefix='weir-proxy-')

    def words(self):
        raise NotImplementedError

    def write(self, name, text):
        with open(f'{self.folder}/{name}', 'w', encoding='utf-8') as file:
            file.write(text)
        return f'{self.folder}/{name}'

    def __enter__(self):
        words = self.words()
        self.log = open(f'{self.folder}/log', 'w', encoding='utf-8')
        home = {'HOME': self.folder, 'XDG_CONFIG_HOME': self.folder, 'XDG_DATA_HOME': self.folder}
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        env={**os.environ, **home})
        end = time.monotonic() + PATIENCE_S
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(('127.0.0.1', self.port)) == 0:
                    return self
            assert self.process.poll() is None and time.monotonic() < end, self.lines()
            time.sleep(0.02)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder)

    def lines(self):
        with open(f'{self.folder}/log', encoding='utf-8') as file:
            return file.read()


class NginxFront(Front):
    name, before = 'nginx', 'unix:'
    patience = {'proxy_connect_timeout 1s': 'proxy_connect_timeout 60s', 'proxy_send_timeout 1s': 'proxy_send_timeout 60s',
                'proxy_read_timeout 2s': 'proxy_read_timeout 60s'}

    def words(self):
        self.changes |= {'listen 80;': f'listen 127.0.0.1:{self.port};', **self.waits}
        if self.is_open:
            self.changes['        return 503;\n        # return 204;'] = '        return 204;'
        return self.words_for(contrib('nginx/weir.conf', self.changes))

    def words_for(self, text):
        self.write('weir.conf', text)
        places = ' '.join(f'{kind}_temp_path {self.folder}/{kind};' for kind in
                          ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
        conf = self.write('nginx.conf', f'''
worker_processes 1; daemon off; master_process off; pid {self.folder}/pid; error_log stderr;
events {{ worker_connections 2048; }}
http {{ {places} access_log off; include {self.folder}/weir.conf; }}''')
        return [shutil.which('nginx') or '/usr/sbin/nginx', '-p', self.folder, '-c', conf]


class HaproxyFront(Front):
    name, before = 'haproxy', 'unix@'
    patience = {'TIMEOUT_MS = 500': 'TIMEOUT_MS = 60000'}

    def script(self):
        """Writes the proxy's script and returns its path."""
        return self.write('weir.lua', contrib('haproxy/weir.lua', self.waits))

    def words(self):
        self.changes['bind :80'] = f'bind 127.0.0.1:{self.port}'
        self.changes['/etc/haproxy/weir.lua'] = self.script()
        text = contrib('haproxy/haproxy.cfg', self.changes)
        if self.is_open:
            closed, opened = (line for line in text.split('\n') if '!weir_allows' in line)
            text = text.replace(closed + '\n', '').replace(opened, opened.replace('# ', ''))
        return self.words_for(text)

    def words_for(self, text):
        return [shutil.which('haproxy') or '/usr/sbin/haproxy', '-db', '-f', self.write('haproxy.cfg', text)]


class CaddyFront(Front):
    name, before = 'caddy', 'unix/'
    options = ''  # further global options
    patience = {'dial_timeout 1s': 'dial_timeout 60s', 'response_header_timeout 2s': 'response_header_timeout 60s'}

    def words(self):
        self.changes |= {':80 {': f'http://:{self.port} {{\n\tbind 127.0.0.1', **self.waits}
        return self.words_for(contrib('caddy/Caddyfile', self.changes))

    def words_for(self, text):
        return [shutil.which('caddy') or '/usr/bin/caddy', 'run', '--adapter', 'caddyfile', '--config',
                self.write('Caddyfile', f'{{\n\tadmin off\n{self.options}\n}}\n' + text)]


FRONTS = (NginxFront, HaproxyFront, CaddyFront)


class Imposter:
    """A foreign program in the place of weir: sends `text` to every client and closes the
    connection."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix='weir-imposter-')
        self.path, self.text = f'{self.folder}/s', b''

    def __enter__(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(64)
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()
        shutil.rmtree(self.folder)

    def _serve(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            with peer:
                peer.settimeout(PATIENCE_S)
                try:
                    heard = b''
                    while b'\r\n\r\n' not in heard and (more := peer.recv(65536)):
                        heard += more
                    peer.sendall(self.text)
                    peer.shutdown(socket.SHUT_WR)
                    while peer.recv(65536):
                        pass
                except OSError:
                    pass  # the client has closed


class Switcher:
    """A service that accepts every Upgrade (101). `seen` are the request heads that arrived."""

    def __init__(self):
        self.listener = socket.socket()
        self.listener.bind(('127.0.0.1', 0))
        self.listener.listen(64)
        self.port, self.seen = self.listener.getsockname()[1], []

    def __enter__(self):
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()

    def _serve(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            with peer:
                peer.settimeout(PATIENCE_S)
                heard = b''
                while b'\r\n\r\n' not in heard and (more := peer.recv(65536)):
                    heard += more
                self.seen.append(heard)
                fields = dict(line.lower().split(b': ', 1) for line in heard.split(b'\r\n')[1:] if b': ' in line)
                if wanted := fields.get(b'upgrade'):
                    peer.sendall(b'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ' + wanted + b'\r\n'
                                 b'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n')
                elif heard:
                    peer.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')


class Activated(Daemon):
    """weir serve with a state file and a socket that outlives it, as systemd keeps one."""

    SCRIPT = '''import os, sys
os.dup2(int(sys.argv[1]), 3)
os.execve(sys.argv[2], sys.argv[2:], {**os.environ, "LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"})'''

    def start(self, *more):
        if not self.sockets:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(self.path)
            self.listener.listen(512)
            self.sockets = (self.listener.fileno(),)
        self.log = open(f'{self.folder}/log', 'a+', encoding='utf-8')
        words = [sys.executable, '-c', self.SCRIPT, str(self.sockets[0]), os.path.abspath(sys.argv[1]), 'serve', '--config',
                 self.config, '--state', f'{self.folder}/state', *self.words, *more]
        self.process = subprocess.Popen(words, stderr=self.log, pass_fds=self.sockets)
        self.port = 0
        self.starts = getattr(self, 'starts', 0) + 1
        self.wait_for('(?s)' + '.*'.join(self.starts * ['listens']))

    def __exit__(self, *why):
        super().__exit__(*why)
        self.listener.close()

    def restart(self):
        assert self.stop(signal.SIGTERM) == 0
        self.start()


class Load:
    """Sends requests over kept connections, with the keys k0, k1, … in turn: at least `least`
    requests, and until result(), which returns a dict of counts. Every request is awaited, so
    that the counts are complete."""

    def __init__(self, front, keys, least, connections=16):
        self.front, self.keys, self.least = front, keys, least
        self.numbers, self.counts, self.is_told = itertools.count(), collections.Counter(), threading.Event()
        self.changed = threading.Condition()
        self.threads = [threading.Thread(target=self._run) for _ in range(connections)]
        for thread in self.threads:
            thread.start()

    def _run(self):
        while (number := next(self.numbers)) < self.least or not self.is_told.is_set():
            try:
                with socket.create_connection(('127.0.0.1', self.front.port), timeout=PATIENCE_S) as peer, peer.makefile('rb') as file:
                    while self._ask(peer, file, number):
                        if (number := next(self.numbers)) >= self.least and self.is_told.is_set():
                            return
            except (OSError, ValueError):
                self._count('broken')

    def _count(self, *what):
        with self.changed:
            self.counts.update(what)
            self.changed.notify_all()

    def _ask(self, peer, file, number):
        """Sends one request and counts its result. Returns true if the connection is kept."""
        peer.sendall(f'GET /x HTTP/1.1\r\nHost: a\r\nX-Test: k{number % self.keys}\r\n\r\n'.encode())
        status, fields = int(file.readline().split()[1]), {}
        while line := file.readline().strip():
            name, _, value = line.decode().lower().partition(': ')
            fields[name] = value
        file.read(int(fields['content-length']))
        is_whole = {'ratelimit', 'ratelimit-policy'} <= set(fields) and (status == 429) == ('retry-after' in fields)
        self._count({200: 'allowed', 429: 'limited'}.get(status, 'other'), *([] if is_whole else ['bare']))
        return fields.get('connection') != 'close'

    def wait_for_more(self, count):
        """Waits until this many more requests were answered."""
        with self.changed:
            least = self.counts.total() + count
            assert self.changed.wait_for(lambda: self.counts.total() >= least, PATIENCE_S)

    def result(self):
        self.is_told.set()
        for thread in self.threads:
            thread.join()
        return {name: self.counts[name] for name in ('allowed', 'limited', 'other', 'bare', 'broken')}
