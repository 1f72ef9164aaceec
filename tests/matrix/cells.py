# SPDX-License-Identifier: MIT
"""The cells of the matrix: each is one spelling of a request, sent through a proxy to a service,
under one set of weir rules.

A cell holds if the request was refused before the service understood it, or if every rule that
applies to the request as the service understood it was also charged for the spelled request. To
learn which rules apply, weir is asked about the same request in plain spelling. All rules have keys
that no other cell shares (the caller's address, host or token), so the rest of each limit shows
whether this very request was charged.
"""
import base64
import collections
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
sys.path[:0] = [os.path.join(HERE, '..', 'serve')]

import http2  # noqa: E402
import services  # noqa: E402
import spellings  # noqa: E402
from daemon import Daemon  # noqa: E402
from fronts import FRONTS  # noqa: E402
from spellings import Caller  # noqa: E402

LIMIT = 1000  # nothing is refilled during a run
ROUTES = '''
rules:
  - {name: login, match: {method: POST, path: /login}, key: ip, limit: 100/d burst=1000}
  - {name: item, match: {path: "/api/items/*"}, key: ip, limit: 100/d burst=1000}
  - {name: admin, match: {path: "/admin/**"}, key: ip, limit: 100/d burst=1000}
  - {name: static, match: {path: "/static/**"}, key: ip, limit: 100/d burst=1000}
  - {name: tenant, match: {host: "*.api.example.org"}, key: host, limit: 100/d burst=1000}
'''
FIRST = ROUTES + '''
  - {name: rest, key: ip, limit: 100/d burst=1000}
admission: {match: first, trusted: [unix]}
'''
ALL = ROUTES + '''
  - {name: any, match: {path: "/**"}, key: ip, limit: 100/d burst=1000}
  - {name: verb, key: [ip, method], limit: 100/d burst=1000}
  - {name: token, match: {header: [{name: authorization}]}, key: "token:authorization", limit: 100/d burst=1000, missing: refuse}
  - {name: key, match: {header: [{name: x-api-key}]}, key: "token:x-api-key", limit: 100/d burst=1000, missing: refuse}
admission: {match: all, trusted: [unix]}
'''
DENIED = Caller('127.250.0.1', 'denied.api.example.org', 'denied')  # denied by each of its address, host and token
DENY = f'''
rules:
  - {{name: tenant, match: {{host: "*.api.example.org"}}, key: host, limit: 100000/d, deny_keys: [{DENIED.host}]}}
  - name: token
    match: {{header: [{{name: authorization}}]}}
    key: token:authorization
    limit: 100000/d
    missing: refuse
    deny_keys: [{DENIED.token}, "{DENIED.texts()['basic']}"]
  - name: key
    match: {{header: [{{name: x-api-key}}]}}
    key: token:x-api-key
    limit: 100000/d
    missing: refuse
    deny_keys: [{DENIED.token}]
admission: {{match: all, trusted: [unix], deny: [{DENIED.address}]}}
'''
BOOKS = {'first': FIRST, 'all': ALL, 'deny': DENY}

# The plain method and path of each route of the services.
PLAIN = {'login': ('POST', '/login'), 'item': ('GET', '/api/items/1'), 'admin': ('GET', '/admin/'),
         'static': ('GET', '/static/a'), 'home': ('GET', '/'), 'none': ('GET', '/none')}


# ---- one request ----

@dataclass
class Answer:
    status: int = 0
    fields: dict = field(default_factory=dict)
    body: bytes = b''

    def took(self):
        """Returns how the service understood the request; None if it understood nothing."""
        # an HTTP/0.9 response has no header fields
        in_body = self.body.decode('latin-1') if self.body.startswith(b'{"route"') else None
        text = self.fields.get('x-took') or in_body
        return json.loads(text) if text else None


def _read_body(file, fields):
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
        return Answer(body=line + file.read())  # HTTP/0.9, or no response
    status, fields = int(line.split()[1]), {}
    while line := file.readline().rstrip(b'\r\n'):
        name, _, value = line.decode('latin-1').partition(':')
        fields[name.lower()] = value.strip()
    if status < 200:
        return _read_answer(file)
    return Answer(status, fields, b'' if 'x-took' in fields or status == 204 else _read_body(file, fields))


def _send(port, caller, row):
    with socket.create_connection(('127.0.0.1', port), timeout=120, source_address=(caller.address, 0)) as peer:
        try:
            peer.sendall(row.request(caller))
            if row.ends_by_closing:
                peer.shutdown(socket.SHUT_WR)
            with peer.makefile('rb') as file:
                if row.is_http2:
                    status, body = http2.read_answer(file)
                    return Answer(status, body=body)
                return _read_answer(file)
        except ConnectionError:
            return Answer()


class Weir:
    """A connection to weir that asks as a proxy does."""

    def __init__(self, daemon):
        self.peer = socket.socket(socket.AF_UNIX)
        self.peer.settimeout(120)
        self.peer.connect(daemon.path)
        self.file = self.peer.makefile('rb')

    def ask(self, fields):
        """Returns (status, {rule: rest of its limit})."""
        lines = [f'{name}: {value}' for name, value in fields.items() if value is not None]
        head = '\r\n'.join(['GET /check?deny=429 HTTP/1.1', 'Host: weir', *lines, '', ''])
        self.peer.sendall(head.encode('latin-1', 'replace'))
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
    escape: str = ''  # why the cell does not hold; '' if it holds

    def shown(self):
        """Returns the route that the service understood, "-" if the service has no such route, or
        who refused the request and with which status."""
        if self.took:
            return self.took['route'] if self.took['route'] != 'none' else '-'
        return f'{self.refused_by()} {self.answer.status or "closed"}'

    def refused_by(self):
        if 'ratelimit-policy' in self.answer.fields:
            return 'service'
        words = (b'Bad request: ', b'Forbidden.', b'Too many requests.', b'Try again later.')
        return 'weir' if 'x-weir' in self.answer.fields or self.answer.body.startswith(words) else 'proxy'

    def line(self):
        policy = re.findall(r'"(\w+)"', self.answer.fields.get('ratelimit-policy', ''))
        return (f'{self.spelling.name}: {self.proxy} -> {self.service} ({self.book}): {self.escape or self.shown()}\n'
                f'    sent   {self.spelling.request(self.caller)!r}\n'
                f'    took   {json.dumps(self.took)}\n'
                f'    judged by {", ".join(policy) or "no rule that the answer tells of"}')


def _plain_host(host):
    """Returns the host name as resolvers see it: in lower case, without the final dot."""
    host = (host or '').lower()
    return host[:-1] if host.endswith('.') else host


def _authorization(credential):
    if credential is None:
        return None
    scheme, _, word = credential.partition(':')
    return 'Bearer ' + word if scheme == 'bearer' else 'Basic ' + base64.b64encode(word.encode('latin-1', 'replace')).decode()


def _plain(cell):
    """Returns the header fields that ask weir about the request as the service understood it."""
    method, target = PLAIN[cell.took['route']]
    return {'X-Original-Method': method if cell.took['route'] == 'login' else cell.took['method'],
            'X-Original-URI': target,
            'X-Original-Host': _plain_host(cell.took['host']) or 'unknown.invalid',
            'X-Forwarded-For': cell.took['ip'] or cell.caller.address,
            'Authorization': _authorization(cell.took['credential']),
            'X-Api-Key': cell.took['key']}


def _uncharged(cell, weir):
    """Returns why the cell does not hold, or ''."""
    route = cell.took['route']
    if cell.book == 'first' and (route == 'none' or route == 'home' and not cell.took['host']):
        return ''  # the request used nothing, or has no known host
    status, left = weir.ask(_plain(cell))
    if status != 204:
        return f'weir refuses the same request in plain words with {status}'
    missed = [rule for rule, number in left.items() if number > LIMIT - 2]
    return f'{", ".join(missed)} did not charge it' if missed else ''


def _admitted(cell):
    """Returns why the cell of a denied caller does not hold, or ''."""
    took, caller = cell.took, cell.caller
    words = {'host': _plain_host(took['host']) == DENIED.host, 'address': caller.address == DENIED.address,
             'key': took['key'] == DENIED.token,
             'credential': took['credential'] in (f'bearer:{DENIED.token}', f'basic:{DENIED.token}:p')}
    denied = [word for word, is_denied in words.items() if is_denied]
    return f'its {", ".join(denied)} is denied' if denied else ''


# ---- all cells ----

def _denied(row, caller):
    """Yields callers with one denied property each, for each property (address, host, token) that
    the row spells."""
    if row.name.startswith(('plain', 'forged')):
        yield Caller(DENIED.address, caller.host, caller.token)
    if re.search(r'\{(host|HOST)\}', row.text) or row.name.startswith('plain'):
        yield Caller(caller.address, DENIED.host, caller.token)
    if re.search(r'\{(token|basic)\}', row.text):
        yield Caller(caller.address, caller.host, DENIED.token)


class Matrix:
    """with Matrix() as matrix: matrix.run(rows); then matrix.strays()"""

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.services = stack.enter_context(services.running())
            self.daemons = {book: stack.enter_context(Daemon(rules)) for book, rules in BOOKS.items()}
            # Each daemon has its own proxy: if two daemons are at Unix sockets, HAProxy 2.6 asks
            # the wrong one.
            self.fronts = {(proxy, book): stack.enter_context(FRONTS[proxy](daemon, self.services))
                           for proxy, (book, daemon) in itertools.product(FRONTS, self.daemons.items())}
            self.numbers = itertools.count()
            self.sent = []  # (service, address) of each cell
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *why):
        self.stack.close()

    def _cell(self, row, proxy, service, book, caller):
        cell = Cell(row, proxy, service, book, caller)
        self.sent.append((service, caller.address))
        try:
            cell.answer = _send(self.fronts[proxy, book].port_of(service, row.is_http2), caller, row)
        except TimeoutError as error:
            raise AssertionError(f'{row.name}: {proxy} -> {service} ({book}): no answer') from error
        cell.took = cell.answer.took()
        return cell

    def _charged(self, row, proxy, service, book, weir):
        cell = self._cell(row, proxy, service, book, Caller.numbered(next(self.numbers)))
        cell.escape = _uncharged(cell, weir) if cell.took else ''
        return cell

    def _row(self, job):
        row, proxy, book = job
        if book == 'deny':
            cells = [self._cell(row, proxy, service, book, caller) for service in self.services
                     for caller in _denied(row, Caller.numbered(next(self.numbers)))]
            for cell in cells:
                cell.escape = _admitted(cell) if cell.took else ''
            return cells
        with contextlib.closing(Weir(self.daemons[book])) as weir:
            return [self._charged(row, proxy, service, book, weir) for service in self.services]

    def run(self, rows):
        """Runs all rows and returns [Cell]."""
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            return list(itertools.chain(*pool.map(self._row, itertools.product(rows, FRONTS, BOOKS))))

    def strays(self):
        """Returns [line] about requests that a service received from a caller who had not sent as
        many. A request without a caller did not come through a proxy."""
        found, sent = [], collections.Counter(self.sent)
        for name, service in self.services.items():
            taken = collections.Counter(took['ip'] for took in service.taken())
            assert taken, f'{name} has told of no request'
            found += [f'{name} took {count} requests of {address}, who sent {sent[name, address]}'
                      for address, count in taken.items() if count > sent[name, address]]
        return found
