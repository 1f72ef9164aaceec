#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A service understands each request as weir has judged it, whatever the spelling and the proxy.

usage: test_matrix.py PROGRAM            the tests
       test_matrix.py PROGRAM --show     the result of each spelling, as a table
       test_matrix.py PROGRAM --escapes  the cells that do not hold

docs/internals/matrix.md explains how to read the table and how to add a line.
"""
import os
import socket
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'cli')]

import cases  # noqa: E402
import services  # noqa: E402
import spellings  # noqa: E402
from cells import Matrix  # noqa: E402
from fronts import FRONTS  # noqa: E402

_ran, _strays = [], []


def _cells(*books):
    """Returns the cells under these sets of rules (all, if none is given). All cells run once."""
    if not _ran:
        with Matrix() as matrix:
            _ran.extend(matrix.run(spellings.read()))
            _strays.extend(matrix.strays())
    return [cell for cell in _ran if not books or cell.book in books]


# ---- output ----

def _names(cells):
    return len({cell.spelling.name for cell in cells})


def _summary(cells):
    taken = [cell for cell in cells if cell.took]
    nothing = [cell for cell in taken if cell.took['route'] == 'none']
    refused = [cell.refused_by() for cell in cells if not cell.took]
    escapes = [cell for cell in cells if cell.escape]
    return (f'{_names(cells)} spellings, {len(cells)} cells: {len(taken) - len(nothing)} taken for a route, {len(nothing)} for none, '
            f'refused {refused.count("proxy")} by the proxy, {refused.count("weir")} by weir, '
            f'{refused.count("service")} by the service; {len(escapes)} escape, of {_names(escapes)} spellings')


def _table(cells):
    """Yields a line for each spelling and proxy, with a column for each service."""
    width = max(len(cell.spelling.name) for cell in cells)
    columns = [f'{name:11}' for name in services.SERVICES]
    yield f'{"spelling":{width}}  {"of":6}  {"through":7}  ' + '  '.join(columns)
    lines = {}
    for cell in cells:
        lines.setdefault((cell.spelling, cell.proxy), {}).setdefault(cell.service, []).append(cell)
    for (row, proxy), by_service in lines.items():
        words = [by_service[name][0].shown() + (' !' if any(cell.escape for cell in by_service[name]) else '')
                 for name in services.SERVICES]
        yield f'{row.name:{width}}  {row.of:6}  {proxy:7}  ' + '  '.join(f'{word:11}' for word in words)


def _none_escapes(cells):
    escapes = [cell for cell in cells if cell.escape]
    print('\n'.join([*(cell.line() for cell in escapes), _summary(cells)]))
    assert cells and not escapes, f'{len(escapes)} cells escape'


# ---- the tests ----

def _is_as_sent(cell):
    """Returns whether the service understood a plain request correctly."""
    took, caller, name = cell.took or {'route': None}, cell.caller, cell.spelling.name
    credentials = {'plain-bearer': f'bearer:{caller.token}', 'plain-http2-bearer': f'bearer:{caller.token}',
                   'plain-basic': f'basic:{caller.token}:p'}
    if cell.service == 'nginx':
        credentials.pop('plain-basic')  # nginx does not parse it
    return took['route'] == cell.spelling.of and (
        took['host'], took['ip'], took['credential'], took['key']) == (
            caller.host, caller.address, credentials.get(name), caller.token if name == 'plain-key' else None)


def each_service_understands_plain_requests():  # otherwise the other tests prove nothing
    plain = [cell for cell in _cells('first', 'all') if cell.spelling.name.startswith('plain-')]
    wrong = [cell.line() for cell in plain if not _is_as_sent(cell)]
    assert plain and not wrong, '\n'.join(wrong)


def service_reads_the_request_body_after_its_response():  # otherwise its proxy may lose the response
    with services.running(['wsgiref']) as running, \
            socket.create_connection(('127.0.0.1', running['wsgiref'].port), timeout=120) as peer:
        peer.sendall(b'POST /login HTTP/1.1\r\nHost: a.api.example.org\r\nTransfer-Encoding: chunked\r\n\r\n')
        answer = b''
        while part := peer.recv(65536):
            answer += part
        assert b'X-Took: {"route": "login"' in answer, answer
        for _ in range(10):
            peer.sendall(b'3\r\na=b\r\n')
        peer.sendall(b'0\r\n\r\n')


def request_that_a_service_understands_is_the_one_weir_charged():  # M1 - M3, M5
    _none_escapes(_cells('first', 'all'))


def denied_caller_is_denied_in_every_spelling():  # M4
    _none_escapes(_cells('deny'))


def each_request_reaches_a_service_at_most_once():  # J7
    _cells()
    assert not _strays, '\n'.join(_strays)


def matrix_covers_all_spellings_proxies_and_services():
    assert _names(_cells()) >= 150
    assert {(cell.proxy, cell.service) for cell in _cells()} == {(proxy, name) for proxy in FRONTS for name in services.SERVICES}


if __name__ == '__main__':
    if sys.argv[2:] == ['--show']:
        print('\n'.join([*_table(_cells('first', 'all')), _summary(_cells())]))
    elif sys.argv[2:] == ['--escapes']:
        print('\n'.join([*(cell.line() for cell in _cells() if cell.escape), _summary(_cells())]))
    else:
        cases.main()
