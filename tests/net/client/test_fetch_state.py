#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir fetch --state: what hosts demanded survives the process. Against a real nginx. The first
argument is the program."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'cli'))

import cases  # noqa: E402
from nginx import PATIENCE_S, Door, Nginx  # noqa: E402
from program import weir  # noqa: E402

AWAY = 'location /away { add_header Retry-After %d always; return 429; }'


def _fetch(state, *words):
    return weir('fetch', '--allow-private', '--quiet', '--ignore-robots', '--attempts', '1', '--state', state, *words)


def _read(path):
    with open(path, encoding='ascii') as file:
        return file.read()


def _await(is_so, what):
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until, what
        time.sleep(0.02)


def retry_after_survives_a_restart_of_fetch():
    with Nginx(AWAY % 3, files={'a': 'a'}) as nginx, Door(nginx) as door, tempfile.TemporaryDirectory() as folder:
        state = f'{folder}/state'
        assert _fetch(state, f'{door.url}/away').returncode == 1
        run = _fetch(state, f'{door.url}/a')
        assert run.returncode == 0, run
        line = json.loads(run.stdout)
        assert line['waited_for'] == 'retry_after', line
        (gap_s,) = door.gaps()
        assert gap_s >= 3, gap_s


def retry_after_survives_a_kill_of_fetch():
    with Nginx(AWAY % 4, files={'a': 'a'}) as nginx, Door(nginx) as door, tempfile.TemporaryDirectory() as folder:
        state = f'{folder}/state'
        process = subprocess.Popen([sys.argv[1], 'fetch', '--allow-private', '--quiet', '--ignore-robots', '--state', state,
                                    f'{door.url}/away'], stdout=subprocess.DEVNULL)
        _await(lambda: os.path.exists(state), 'the state is written while fetch waits for the host')
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert len(nginx.log()) == 1, nginx.log()
        assert _fetch(state, f'{door.url}/a').returncode == 0
        (gap_s,) = door.gaps()
        assert gap_s >= 4, gap_s


def interrupted_fetch_writes_its_state():
    with Nginx(AWAY % 60, files={'a': 'a'}) as nginx, tempfile.TemporaryDirectory() as folder:
        state = f'{folder}/state'
        process = subprocess.Popen([sys.argv[1], 'fetch', '--allow-private', '--quiet', '--ignore-robots', '--state', state,
                                    f'{nginx.url}/a', f'{nginx.url}/away'], stdout=subprocess.DEVNULL)
        _await(lambda: len(nginx.log()) == 2, 'both URLs were requested')
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE_S) == 130
        title, host, end = _read(state).splitlines()
        assert title == 'weir state 1' and end.startswith('end 1 '), _read(state)
        key, *numbers = host.split('\t')
        assert key == f'127.0.0.1:{nginx.port}' and int(numbers[3]) > time.time_ns() + 20 * 10**9, host


def state_of_hosts_not_fetched_again_is_kept():
    with Nginx(AWAY % 60, files={'a': 'a'}) as one, Nginx(files={'a': 'a'}) as other, \
            tempfile.TemporaryDirectory() as folder:
        state = f'{folder}/state'
        assert _fetch(state, f'{one.url}/away').returncode == 1
        host = _read(state).splitlines()[1]
        assert _fetch(state, f'{other.url}/a').returncode == 0
        kept = [line for line in _read(state).splitlines() if line.startswith(f'127.0.0.1:{one.port}\t')]
        assert [line.split('\t')[4] for line in kept] == [host.split('\t')[4]], kept


def damaged_or_foreign_state_file_is_refused_and_kept():
    with Nginx(AWAY % 60, files={'a': 'a'}) as nginx, tempfile.TemporaryDirectory() as folder:
        state = f'{folder}/state'
        assert _fetch(state, f'{nginx.url}/away').returncode == 1
        whole = _read(state)
        before = len(nginx.log())
        digit = whole.index('\t') + 1
        damaged = {
            '': 'not a state file', 'my diary\n': 'not a state file',
            whole[:-1]: 'damaged', whole[:len(whole) // 2]: 'damaged', whole + 'x\n': 'damaged',
            whole[:digit] + '9' + whole[digit + 1:]: 'damaged',
            whole.replace('state 1', 'state 2'): 'another version',
        }
        for text, word in damaged.items():
            with open(state, 'w', encoding='ascii') as file:
                file.write(text)
            run = _fetch(state, f'{nginx.url}/a')
            assert run.returncode == 1 and run.stdout == '' and word in run.stderr, (text, run)
            assert run.stderr.count('\n') == 1 and _read(state) == text, run
        assert len(nginx.log()) == before
        for path in (folder, '/dev/null', f'{folder}/none/state'):
            run = _fetch(path, f'{nginx.url}/a')
            assert run.returncode == 1 and '--state' in run.stderr, run
        assert len(nginx.log()) == before


def only_one_process_uses_a_fetch_state_file():
    with Nginx(AWAY % 60, files={'a': 'a'}) as nginx, tempfile.TemporaryDirectory() as folder:
        state = f'{folder}/state'
        process = subprocess.Popen([sys.argv[1], 'fetch', '--allow-private', '--quiet', '--ignore-robots', '--state', state,
                                    f'{nginx.url}/away'], stdout=subprocess.DEVNULL)
        _await(lambda: os.path.exists(state), 'the first process uses the state file')
        run = _fetch(state, f'{nginx.url}/a')
        assert run.returncode == 1 and 'another weir' in run.stderr and run.stdout == '', run
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE_S) == 130
        assert len(nginx.log()) == 1, nginx.log()


def full_disk_keeps_the_last_fetch_state_intact():
    with Nginx(AWAY % 60, files={'a': 'a'}) as nginx, tempfile.TemporaryDirectory() as folder:
        state = f'{folder}/state'
        assert _fetch(state, f'{nginx.url}/away').returncode == 1
        whole = _read(state)
        with Nginx(files={'a': 'a'}) as other:
            small = len(whole) - 10  # limit of the file size, bytes: writing fails in the middle
            limited = subprocess.run(
                ['sh', '-c', 'trap "" XFSZ; exec prlimit --fsize="$0" "$@"', str(small), sys.argv[1], 'fetch',
                 '--allow-private', '--quiet', '--ignore-robots', '--state', state, '--out', '/dev/null',
                 f'{other.url}/a'], capture_output=True, text=True, timeout=PATIENCE_S)
        assert limited.returncode == 1 and 'cannot write' in limited.stderr, limited
        assert _read(state) == whole
        assert sorted(os.listdir(folder)) == ['state', 'state.lock'], os.listdir(folder)


def fetch_reports_lines_that_cannot_be_written():
    with Nginx(files={'a': 'a'}) as nginx:
        run = weir('fetch', '--allow-private', '--quiet', '--out', '/dev/full', f'{nginx.url}/a')
        assert run.returncode == 1 and 'cannot write' in run.stderr, run


if __name__ == '__main__':
    cases.main()
