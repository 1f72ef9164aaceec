#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir serve under requests that cost much work for few bytes: its loop looks at its timers every 5 ms, or it ends
(WEIR_TEST_AWAY, src/shell/loop/away.h). The first argument is the program."""
import json
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
QUEUE = '''
rules:
  - {name: slow, key: ip, limit: 1/h}
admission: {trusted: [127.0.0.0/8, unix]}
'''
SAID = 'X-Original-Method: GET\r\nX-Original-URI: /\r\nX-Original-Host: a.example\r\n'


def _check(fields=''):
    return f'GET /check HTTP/1.1\r\nHost: localhost\r\n{SAID}{fields}\r\n'.encode()


def _post(verb, body):
    return f'POST /v1/{verb} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n' \
           f'Content-Length: {len(body)}\r\n\r\n{body}'.encode()


def _send(daemon, data):
    """Sends all while it reads. Returns what came."""
    came = bytearray()
    with daemon.raw() as peer:
        def write():
            try:
                peer.sendall(data)
                peer.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it has hung up
        writer = threading.Thread(target=write)
        writer.start()
        try:
            while piece := peer.recv(1 << 20):
                came += piece
        except ConnectionResetError:
            pass
        writer.join()
    return bytes(came)


def _at_once(daemon, data, times):
    threads = [threading.Thread(target=_send, args=(daemon, data)) for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _ends_well(daemon):
    status = daemon.stop()
    with open(f'{daemon.folder}/log', encoding='utf-8') as log:
        assert status == 0, log.read()


def ten_thousand_requests_in_one_piece_hold_no_loop_up():  # M12, N1-2
    with Daemon(RULES) as daemon:
        assert _send(daemon, _check() * 10000).count(b'HTTP/1.1 204') == 10000
        _at_once(daemon, _check() * 400, 100)
        _ends_well(daemon)


def heads_of_many_fields_and_keys_hold_no_loop_up():  # M12, N1-2
    with Daemon(RULES) as daemon:
        for fields in ('a: b\r\n' * 2000, 'X-Forwarded-For: ' + '192.0.2.1, ' * 700 + '\r\n', 'Cookie: ' + 'a=b; ' * 1500 + '\r\n'):
            _at_once(daemon, _check(fields) * 20, 8)
        _at_once(daemon, b'\r\n' * 100000, 8)
        _ends_well(daemon)


def bodies_that_nest_or_repeat_hold_no_loop_up():  # M12, N1-2
    many = ', '.join(f'"key{number}": "{number}"' for number in range(3000))
    bodies = ['[' * 60000, '{"client":' * 6000, '{' + many + '}', '{"client": "192.0.2.1", "headers": {' + many + '}}',
              '{"client": "' + '\\u0041' * 10000 + '"}', '{"client": 1e' + '9' * 60000 + '}', '[' + '{"client": "192.0.2.1"}, ' * 2000 + '{}]']
    with Daemon(RULES) as daemon:
        for body in bodies:
            _at_once(daemon, _post('try', body) * 4, 4)
        chunks = b'POST /v1/try HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
        _at_once(daemon, chunks + b'1\r\n \r\n' * 60000, 8)
        _ends_well(daemon)


def thousands_who_wait_and_leave_at_once_hold_no_loop_up():  # M12, N1-2
    with Daemon(QUEUE) as daemon:
        question = _post('acquire', json.dumps({'client': '192.0.2.1', 'timeout': '50s'}))
        peers = [daemon.raw() for _ in range(500)]
        for peer in peers:
            peer.sendall(question)
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for('reloaded')
        for peer in peers:
            peer.close()
        _ends_well(daemon)


if __name__ == '__main__':
    cases.main()
