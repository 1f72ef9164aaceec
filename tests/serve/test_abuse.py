#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir serve under attack and in trouble. The first argument is the program."""
import os
import resource
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'cli')]

import cases  # noqa: E402
from daemon import JSON, TOKEN, Daemon  # noqa: E402
from program import weir  # noqa: E402


def _log_that_nobody_reads(daemon):
    """Restarts the daemon with a full pipe for its log. Returns the read end."""
    daemon.stop()
    taken, given = os.pipe()
    os.set_blocking(given, False)
    try:
        while True:
            os.write(given, b'x')
    except BlockingIOError:
        os.set_blocking(given, True)
    daemon.process = subprocess.Popen([os.path.abspath(sys.argv[1]), 'serve', '--config', daemon.config, '--listen',
                                       f'unix:{daemon.path}', '--token-file', f'{daemon.folder}/token'], stderr=given)
    os.close(given)
    return taken


def _wait_until(is_so, seconds=60):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def _is_served(daemon):
    try:
        return daemon.ask('GET', '/healthz', connection=daemon.unix())[0] == 200
    except OSError:
        return False


def unread_log_blocks_neither_decisions_nor_the_end():  # I6
    with Daemon() as daemon:
        taken = _log_that_nobody_reads(daemon)
        _wait_until(lambda: _is_served(daemon))
        daemon.process.send_signal(signal.SIGHUP)
        given = {'Authorization': f'Bearer {TOKEN}'}
        assert daemon.ask('POST', '/v1/admin/reload', fields=given, connection=daemon.unix())[0] == 200
        assert daemon.ask('GET', '/check', connection=daemon.unix())[0] == 204
        _wait_until(lambda: 'weir_serve_lines_lost_total 2' in
                    daemon.ask('GET', '/metrics', connection=daemon.unix())[2])
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.process.wait(timeout=60) == 0
        os.close(taken)


# ---- resources of each listener ----

SHARES = '''
rules:
  - {name: dear, match: {path: /dear}, key: global, limit: 1/h}
  - {name: plain, match: {path: /plain}, key: global, limit: 100/s}
  - {name: flight, key: ip, limit: concurrent=4}
admission:
  trusted: [unix]
  holds: 8
'''


def _acquire(connection):
    connection.request('POST', '/v1/acquire', '{"target": "/dear"}', JSON)
    return connection


def waiting_acquires_at_one_listener_leave_room_at_another():  # M8
    with Daemon(SHARES, ['--waiting', '8']) as daemon:
        assert daemon.call('try', '{"target": "/dear"}')[0] == 200
        waiting = [_acquire(daemon.tcp()) for _ in range(4)]
        _wait_until(lambda: 'weir_serve_waiting_acquires 4' in daemon.ask('GET', '/metrics')[2])
        assert daemon.call('acquire', '{"target": "/dear"}')[0] == 503
        own = _acquire(daemon.unix())
        _wait_until(lambda: 'weir_serve_waiting_acquires 5' in daemon.ask('GET', '/metrics')[2])
        for peer in (*waiting, own):
            peer.close()
        _wait_until(lambda: 'weir_serve_waiting_acquires 0' in daemon.ask('GET', '/metrics')[2])
        again = _acquire(daemon.tcp())
        _wait_until(lambda: 'weir_serve_waiting_acquires 1' in daemon.ask('GET', '/metrics')[2])
        again.close()


def reservations_at_one_listener_leave_permits_to_another():  # M8
    plain = '{"target": "/plain", "lease_ms": 86400000}'
    with Daemon(SHARES) as daemon:
        held = [daemon.call('reserve', plain)[1]['hold'] for _ in range(4)]
        assert daemon.call('reserve', plain)[1]['cause'] == 'full'
        for _ in range(4):
            assert daemon.ask('GET', '/check', connection=daemon.unix())[0] == 204
        assert daemon.call('cancel', {'hold': held[0]})[0] == 200
        assert daemon.call('reserve', plain)[1]['allowed']


# ---- restarts that fail ----

def _few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))


def failed_restart_keeps_the_sockets_of_the_old_daemon():
    with Daemon() as daemon:
        words = ('--listen', '127.0.0.1:0', '--listen', f'unix:{daemon.path}', '--handover', f'{daemon.folder}/handover')
        daemon.stop()
        daemon.start('--handover', f'{daemon.folder}/handover')
        kept = [daemon.raw() for _ in range(60)]
        # the first has too few descriptors for these connections, the second cannot listen at its
        # address
        run = weir('serve', '--config', daemon.config, *words, preexec_fn=_few_files)
        assert run.returncode == 1 and 'continues to run' in run.stderr, run
        run = weir('serve', '--config', daemon.config, *words, '--listen', '192.0.2.1:9')
        assert run.returncode == 1 and 'cannot listen' in run.stderr, run
        assert daemon.ask('GET', '/check', connection=daemon.unix())[0] == 204
        assert daemon.check()[0] == 204
        kept[0].sendall(b'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
        assert kept[0].recv(1000).startswith(b'HTTP/1.1 200')


if __name__ == '__main__':
    cases.main()
