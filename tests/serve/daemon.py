# SPDX-License-Identifier: MIT
"""weir serve in a temporary folder, and its clients. The first argument of the test program is
weir."""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

RULES = '''
rules:
  - {name: five, key: ip, limit: 5/h}
admission:
  trusted: [127.0.0.0/8, unix]
'''
PATIENCE_S = 120  # time limit of waits for events that must come: a machine that runs tests may be very busy
TOKEN = 'a-token-that-nobody-guesses'
JSON = {'Content-Type': 'application/json'}


def said(fields):
    """Returns the header fields that a proxy must send about a request and that `fields` lacks."""
    names = {name.lower() for name in fields}
    return {f'X-Original-{what}': value for what, value in (('Method', 'GET'), ('URI', '/'), ('Host', 'a.example'))
            if not names & {f'x-original-{what}'.lower(), f'x-forwarded-{what}'.lower()}}


class Unix(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__('localhost', timeout=PATIENCE_S)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(self._path)


class Daemon:
    """weir serve. `{folder}` in a word stands for its folder, which has a file `token`. `before` is
    a command that runs it."""

    def __init__(self, rules=RULES, words=(), environment=None, sockets=(), before=()):
        self.before = before
        self.folder = tempfile.mkdtemp(prefix='weir-serve-')
        self.config, self.path = f'{self.folder}/weir.yaml', f'{self.folder}/s'
        self.words, self.environment, self.sockets = [word.replace('{folder}', self.folder) for word in words], environment or {}, sockets
        with open(f'{self.folder}/token', 'w', encoding='ascii') as file:
            file.write(TOKEN + '\n')
        os.chmod(f'{self.folder}/token', 0o600)
        self.write(rules)
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.log.closed and (self.process.poll() or 0) < 0:  # no test has seen its end
            print(f'the daemon was ended by signal {-self.process.returncode}: {self.lines()[-4000:]}')
        self.stop(signal.SIGKILL)
        shutil.rmtree(self.folder)

    def write(self, rules):
        with open(self.config, 'w', encoding='utf-8') as file:
            file.write(rules)

    def _begin(self, *more):
        self.log = open(f'{self.folder}/log', 'w+', encoding='utf-8')
        listen = [] if self.sockets else ['--listen', '127.0.0.1:0', '--listen', f'unix:{self.path}']
        words = [*self.before, os.path.abspath(sys.argv[1]), 'serve', '--config', self.config, *listen, *self.words, *more]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=self.log, env={**os.environ, **self.environment},
                                        pass_fds=self.sockets)
        places = words.count('--listen') or len(self.sockets)
        self.wait_for('(?s)' + '.*'.join(places * ['listens at [^\n]*\n']))

    def start(self, *more):
        self._begin(*more)
        port = re.search(r'\(port (\d+)\)', self.lines())
        self.port = int(port.group(1)) if port else 0

    def start_after(self):
        """Starts a second daemon with the same arguments, which takes over (--handover). Waits for
        the end of the first."""
        old = self.process
        self.log.close()
        self._begin()
        assert old.wait(timeout=PATIENCE_S) == 0

    def dashboard(self):
        """Returns the URL of the dashboard."""
        place = r'dashboard at .*\(port (\d+)\)'
        self.wait_for(place)
        return f'http://127.0.0.1:{re.search(place, self.lines()).group(1)}/'

    def lines(self):
        self.log.flush()
        with open(f'{self.folder}/log', encoding='utf-8') as file:
            return file.read()

    def wait_for(self, pattern, seconds=PATIENCE_S):
        """Waits until the log matches the pattern."""
        end = time.monotonic() + seconds
        while not re.search(pattern, self.lines()):
            assert time.monotonic() < end, f'{pattern!r} is not in {self.lines()!r}'
            assert self.process.poll() is None, self.lines()
            time.sleep(0.01)

    def stop(self, number=signal.SIGTERM):
        """Sends the signal and returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(timeout=PATIENCE_S)
        self.log.close()
        return status

    def tcp(self):
        return http.client.HTTPConnection('127.0.0.1', self.port, timeout=PATIENCE_S)

    def unix(self):
        return Unix(self.path)

    def raw(self):
        peer = socket.create_connection(('127.0.0.1', self.port), timeout=PATIENCE_S)
        return peer

    def ask(self, method, path, body=None, fields=None, connection=None):
        """Returns (status, {field name in lower case: value}, body). Without fields, /check is
        asked as a proxy does."""
        if fields is None and path.startswith('/check'):
            fields = said({})
        at = connection or self.tcp()
        at.request(method, path, body, fields or {})
        answer = at.getresponse()
        text = answer.read().decode()
        if connection is None:
            at.close()
        assert answer.getheader('X-Weir') == '1', 'a response without the X-Weir mark'
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, text

    def check(self, path='/check', **fields):
        fields = {name.replace('_', '-'): value for name, value in fields.items()}
        return self.ask('GET', path, fields={**said(fields), **fields})

    def call(self, verb, question, connection=None):
        """Returns the reply of the API: (status, object)."""
        text = question if isinstance(question, (str, bytes)) else json.dumps(question)
        status, _, body = self.ask('POST', f'/v1/{verb}', text, JSON, connection)
        return status, json.loads(body)

    def admin(self, verb, question='', **fields):
        given = {**JSON, 'Authorization': f'Bearer {TOKEN}', **{n.replace('_', '-'): v for n, v in fields.items()}}
        return self.ask('POST', f'/v1/admin/{verb}', question, fields={n: v for n, v in given.items() if v})[0]
