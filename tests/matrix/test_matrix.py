#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a service takes a request for is what weir has judged, whatever the spelling and the proxy.

usage: test_matrix.py PROGRAM            the tests
       test_matrix.py PROGRAM --show     what becomes of each spelling, as a table
       test_matrix.py PROGRAM --escapes  the cells that escape, a line each
docs/internals/matrix.md tells how it works.
"""
import base64
import concurrent.futures
import contextlib
import itertools
import json
import os
import re
import socket
import sys
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'cli'), os.path.join(HERE, '..', 'serve')]

import cases  # noqa: E402
import services  # noqa: E402
import spellings  # noqa: E402
from daemon import Daemon  # noqa: E402
from fronts import FRONTS  # noqa: E402
from spellings import Caller  # noqa: E402

# A rule charges one caller, whom nobody else in the matrix is; nothing comes back within a run.
LIMIT = 1000
RULES = '''
rules:
  - {{name: login, match: {{method: POST, path: /login}}, key: ip, limit: 100/d burst=1000}}
  - {{name: item, match: {{path: "/api/items/*"}}, key: ip, limit: 100/d burst=1000}}
  - {{name: admin, match: {{path: "/admin/**"}}, key: ip, limit: 100/d burst=1000}}
  - {{name: static, match: {{path: "/static/**"}}, key: ip, limit: 100/d burst=1000}}
  - {{name: tenant, match: {{host: "*.api.example.org"}}, key: host, limit: 100/d burst=1000}}
{more}
admission: {{match: {match}, trusted: [unix]}}
'''
BOOKS = {
    'first': RULES.format(match='first', more='  - {name: rest, key: ip, limit: 100/d burst=1000}'),
    'all': RULES.format(match='all', more='''\
  - {name: any, match: {path: "/**"}, key: ip, limit: 100/d burst=1000}
  - {name: token, match: {header: [{name: authorization}]}, key: "token:authorization", limit: 100/d burst=1000, missing: refuse}
  - {name: key, match: {header: [{name: x-api-key}]}, key: "token:x-api-key", limit: 100/d burst=1000, missing: refuse}'''),
}
PLAIN = {'login': ('POST', '/login'), 'item': ('GET', '/api/items/1'), 'admin': ('GET', '/admin/'),
         'static': ('GET', '/static/a'), 'home': ('GET', '/'), 'none': ('GET', '/none')}


# ---- one request ----

@dataclass
class Answer:
    status: int = 0
    fields: dict = field(default_factory=dict)
    body: bytes = b''

    def took(self):
        """What the service says that it took; None if it was not asked."""
        text = self.fields.get('x-took') or (self.body.decode('latin-1') if self.body.startswith(b'{"route"') else None)
        return json.loads(text) if text else None


def _rest_of_body(file, fields):
    if 'chunked' in fields.get('transfer-encoding', ''):
        parts = []
        while size := int(file.readline().split(b';')[0] or b'0', 16):
            parts.append(file.read(size))
            file.readline()
        return b''.join(parts)
    return file.read(int(fields['content-length'])) if 'content-length' in fields else file.read()


def _read_answer(file):
    line = file.readline()
    if not line.startswith(b'HTTP/'):
        return Answer(body=line + file.read())  # HTTP/0.9, or nothing at all
    status, fields = int(line.split()[1]), {}
    while (line := file.readline().rstrip(b'\r\n')):
        name, _, value = line.decode('latin-1').partition(':')
        fields[name.lower()] = value.strip()
    if status < 200:
        return _read_answer(file)
    return Answer(status, fields, b'' if 'x-took' in fields or status == 204 else _rest_of_body(file, fields))


def _send(port, source, request):
    with socket.create_connection(('127.0.0.1', port), timeout=60, source_address=(source, 0)) as peer:
        try:
            peer.sendall(request)
            with peer.makefile('rb') as file:
                return _read_answer(file)
        except ConnectionError:
            return Answer()
        except TimeoutError:
            return None


class Weir:
    """weir, asked by us as a proxy asks it."""

    def __init__(self, daemon):
        self.peer = socket.socket(socket.AF_UNIX)
        self.peer.settimeout(60)
        self.peer.connect(daemon.path)
        self.file = self.peer.makefile('rb')

    def ask(self, **fields):
        """(status, {rule: what is left})"""
        lines = [f'{name.replace("_", "-")}: {value}' for name, value in fields.items() if value is not None]
        self.peer.sendall('\r\n'.join(['GET /check?deny=429 HTTP/1.1', 'Host: weir', *lines, '', '']).encode('latin-1', 'replace'))
        answer = _read_answer(self.file)
        left = re.findall(r'"(\w+)";r=(\d+)', answer.fields.get('ratelimit', ''))
        return answer.status, {name: int(number) for name, number in left}

    def close(self):
        self.file.close()
        self.peer.close()


# ---- one cell ----

@dataclass
class Cell:
    spelling: spellings.Spelling
    proxy: str
    service: str
    book: str
    caller: Caller
    answer: Answer = None
    took: dict = None
    escape: str = ''  # why, if it does

    def shown(self):
        """As the table has it: the route that the service took; or who refused it, and how."""
        if self.took:
            return self.took['route'] if self.took['route'] != 'none' else '-'
        return f'{self.refused_by()} {self.answer.status or "closed"}'

    def refused_by(self):
        if 'ratelimit-policy' in self.answer.fields:
            return 'service'
        words = (b'The request does not say who asks.', b'Bad request.\n', b'Forbidden.', b'Too many requests.',
                 b'Try again later.', b'{"error"')
        return 'weir' if 'x-weir' in self.answer.fields or self.answer.body.startswith(words) else 'proxy'

    def line(self):
        policy = re.findall(r'"(\w+)"', self.answer.fields.get('ratelimit-policy', ''))
        return (f'{self.spelling.name}: {self.proxy} -> {self.service} ({self.book}): {self.escape}\n'
                f'    sent   {self.spelling.request(self.caller)!r}\n'
                f'    took   {json.dumps(self.took)}\n'
                f'    judged by {", ".join(policy) or "no rule that the answer tells of"}')


def _canonical_host(host):
    host = host.lower()
    return host[:-1] if host.endswith('.') else host


def _authorization(credential):
    if credential is None:
        return None
    scheme, _, word = credential.partition(':')
    return 'Bearer ' + word if scheme == 'bearer' else 'Basic ' + base64.b64encode(word.encode('latin-1', 'replace')).decode()


def _escape(cell, weir):
    """Asks weir about the plain request that the service took this one for: each rule that is charged for it must have been
    charged for this one. Why it is not so, or ''."""
    took = cell.took
    route, host = took['route'], took.get('host')
    if cell.book == 'first' and (route == 'none' or route == 'home' and not host):
        return ''
    method, target = PLAIN[route]
    status, left = weir.ask(
        X_Original_Method=took['method'] if route != 'login' else method, X_Original_URI=target,
        X_Original_Host=_canonical_host(host) if host else 'unknown.invalid',
        X_Forwarded_For=took.get('ip') or cell.caller.address, Authorization=_authorization(took.get('credential')),
        X_Api_Key=took.get('key'))
    if status != 204:
        return f'weir refuses the same request in plain words with {status}'
    missed = [rule for rule, number in left.items() if number > LIMIT - 2]
    return f'{", ".join(missed)} did not charge it' if missed else ''


# ---- all cells ----

class Matrix:
    """with Matrix() as matrix: matrix.run(rows)"""

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.services = stack.enter_context(services.running())
            self.daemons = {name: stack.enter_context(Daemon(rules)) for name, rules in BOOKS.items()}
            # A proxy for each daemon: HAProxy 2.6 asks the one where it wants the other, if both are at Unix sockets.
            self.fronts = {(proxy, book): stack.enter_context(FRONTS[proxy](daemon, self.services))
                           for proxy, (book, daemon) in itertools.product(FRONTS, self.daemons.items())}
            self.numbers = itertools.count()
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *why):
        self.stack.close()

    def _cell(self, row, proxy, book, service, weir):
        for _ in range(5):
            caller = Caller.numbered(next(self.numbers))
            cell = Cell(row, proxy, service, book, caller)
            cell.answer = _send(self.fronts[proxy, book].ports[service], caller.address, row.request(caller))
            if cell.answer is None or cell.answer.status != 503:  # else the machine may be so busy that the proxy did not wait for weir
                break
        assert cell.answer, f'{row.name}: {proxy} -> {service} ({book}): no answer'
        cell.took = cell.answer.took()
        cell.escape = _escape(cell, weir) if cell.took else ''
        return cell

    def _row(self, job):
        row, proxy, book = job
        with contextlib.closing(Weir(self.daemons[book])) as weir:
            return [self._cell(row, proxy, book, service, weir) for service in self.services]

    def run(self, rows):
        """[Cell]"""
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            return list(itertools.chain(*pool.map(self._row, itertools.product(rows, FRONTS, BOOKS))))


# ---- what is shown ----

def _summary(cells):
    taken = sum(1 for cell in cells if cell.took and cell.took['route'] != 'none')
    nothing = sum(1 for cell in cells if cell.took and cell.took['route'] == 'none')
    by = {who: sum(1 for cell in cells if not cell.took and cell.refused_by() == who) for who in ('proxy', 'weir', 'service')}
    escapes = [cell for cell in cells if cell.escape]
    return (f'{len({cell.spelling.name for cell in cells})} spellings, {len(cells)} cells: {taken} taken, {nothing} taken for '
            f'nothing that there is, refused {by["proxy"]} by the proxy, {by["weir"]} by weir, {by["service"]} by the service; '
            f'{len(escapes)} escape, of {len({cell.spelling.name for cell in escapes})} spellings')


def _show(cells):
    """A row for each spelling and proxy, a column for each service."""
    names = list(services.SERVICES)
    width = max(len(cell.spelling.name) for cell in cells)
    print(f'{"spelling":{width}}  {"of":6}  {"through":7}  ' + '  '.join(f'{name:11}' for name in names))
    by = {(cell.spelling.name, cell.proxy, cell.service, cell.book): cell for cell in cells}
    for row, proxy in dict.fromkeys((cell.spelling, cell.proxy) for cell in cells):
        words = []
        for name in names:
            both = [by[row.name, proxy, name, book] for book in BOOKS]
            words.append(both[0].shown() + (' !' if any(cell.escape for cell in both) else ''))
        print(f'{row.name:{width}}  {row.of:6}  {proxy:7}  ' + '  '.join(f'{word:11}' for word in words))


_ran = []


def _cells():
    """All of them, made once."""
    if not _ran:
        with Matrix() as matrix:
            _ran.extend(matrix.run(spellings.read()))
    return _ran


# ---- the tests ----

def _as_sent(cell):
    """Whether the service took a plain request for what it is."""
    took, caller = cell.took or {}, cell.caller
    words = {'plain-bearer': f'bearer:{caller.token}', 'plain-basic': f'basic:{caller.token}:p'}
    credential = words.get(cell.spelling.name) if cell.service != 'nginx' or 'basic' not in cell.spelling.name else None
    return (took.get('route') == cell.spelling.of and took['host'] == caller.host and took['ip'] == caller.address and
            took['credential'] == credential and
            took.get('key') == (caller.token if cell.spelling.name == 'plain-key' else None))


def each_service_takes_plain_requests_for_what_they_are():  # else the rest shows nothing
    plain = [cell for cell in _cells() if cell.spelling.name.startswith('plain-')]
    wrong = [cell for cell in plain if not _as_sent(cell)]
    print('\n'.join(cell.line() for cell in wrong))
    assert plain and not wrong


def each_request_reaches_a_service_once_or_not_at_all():  # J4
    for name in services.SERVICES:
        counts = sorted(cell.took['count'] for cell in _cells() if cell.took and cell.service == name and 'count' in cell.took)
        assert counts == list(range(1, len(counts) + 1)), f'{name}: requests were taken that no cell has'


def the_matrix_is_as_wide_as_it_says():
    assert len({row.name for row in spellings.read()}) >= 150
    assert {cell.proxy for cell in _cells()} == set(FRONTS) and {cell.service for cell in _cells()} == set(services.SERVICES)


if __name__ == '__main__':
    if sys.argv[2:] == ['--show']:
        _show(_cells())
        print(_summary(_cells()))
    elif sys.argv[2:] == ['--escapes']:
        print('\n'.join(cell.line() for cell in _cells() if cell.escape))
        print(_summary(_cells()))
    else:
        cases.main()
