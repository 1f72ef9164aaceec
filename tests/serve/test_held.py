#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir serve under requests that cost much work for few bytes: its loop must check its timers every
5 ms, or the daemon aborts (WEIR_TEST_WATCHDOG, src/http/loop/watchdog.h). The first argument is the
program."""
import os
import signal
import socket
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'cli')]

import cases  # noqa: E402
from daemon import Daemon  # noqa: E402

RULES = '''
rules:
  - {name: many, key: ip, limit: 1000000/s}
  - {name: cookie, key: "token:cookie", limit: 1000000/s}
admission: {match: all, trusted: [127.0.0.0/8, unix]}
'''
SAID = 'X-Original-Method: GET\r\nX-Original-URI: /\r\nX-Original-Host: a.example\r\n'


def _check(fields=''):
    return f'GET /check HTTP/1.1\r\nHost: localhost\r\n{SAID}{fields}\r\n'.encode()


def _post(verb, body):
    return f'POST /v1/{verb} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n' \
           f'Content-Length: {len(body)}\r\n\r\n{body}'.encode()


def _read(peer):
    """Returns everything received until the connection is closed."""
    came = bytearray()
    try:
        while piece := peer.recv(1 << 20):
            came += piece
    except ConnectionResetError:
        pass
    return bytes(came)


def _send(daemon, data):
    """Sends the data while reading. Returns what was received."""
    with daemon.raw() as peer:
        def write():
            try:
                peer.sendall(data)
                peer.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # the daemon has closed
        writer = threading.Thread(target=write)
        writer.start()
        came = _read(peer)
        writer.join()
    return came


def _at_once(daemon, data, times):
    """Sends the data on this many connections while the daemon is stopped. Returns the reply on the
    first one."""
    assert len(data) <= 60000, 'more than the buffer of an unread socket'
    peers = [daemon.raw() for _ in range(times)]
    for peer in peers:
        peer.sendall(_check())
        assert peer.recv(1000).startswith(b'HTTP/1.1 204')
    daemon.process.send_signal(signal.SIGSTOP)
    for peer in peers:
        peer.sendall(data)
        peer.shutdown(socket.SHUT_WR)
    daemon.process.send_signal(signal.SIGCONT)
    return [_read(peer) for peer in peers][0]


def _ends_well(daemon):
    status = daemon.stop()
    with open(f'{daemon.folder}/log', encoding='utf-8') as log:
        assert status == 0, log.read()


def ten_thousand_requests_at_once_block_no_loop():  # M12, N1-2
    with Daemon(RULES) as daemon:
        assert _send(daemon, _check() * 10000).count(b'HTTP/1.1 204') == 10000
        assert _at_once(daemon, _check() * 400, 60).count(b'HTTP/1.1 204') == 400
        _ends_well(daemon)


def heads_of_many_fields_and_keys_block_no_loop():  # M12, N1-2
    with Daemon(RULES) as daemon:
        for fields in ('a: b\r\n' * 50, 'X-Forwarded-For: ' + '192.0.2.1, ' * 200 + '\r\n', 'Cookie: ' + 'a=b; ' * 400 + '\r\n'):
            head = _check(fields)
            _at_once(daemon, head * (60000 // len(head)), 60)
        _at_once(daemon, _check('a: b\r\n' * 2000), 60)
        _at_once(daemon, b'\r\n' * 30000, 60)
        _ends_well(daemon)


def nested_and_repetitive_bodies_block_no_loop():  # M12, N1-2
    many = ', '.join(f'"key{number}": "{number}"' for number in range(1000))
    bodies = ['[' * 25000, '{"client":' * 2500, '{' + many + '}', '{"client": "192.0.2.1", "headers": {' + many + '}}',
              '{"client": "' + '\\u0041' * 4000 + '"}', '{"client": 1e' + '9' * 25000 + '}', '[' + '{"client": "192.0.2.1"}, ' * 1000 + '{}]']
    with Daemon(RULES) as daemon:
        for body in bodies:
            _at_once(daemon, _post('try', body) * 2, 60)
        chunks = b'POST /v1/try HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
        _at_once(daemon, chunks + b'1\r\n \r\n' * 9000, 60)
        _ends_well(daemon)


if __name__ == '__main__':
    cases.main()
