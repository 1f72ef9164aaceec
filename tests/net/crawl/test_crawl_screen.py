#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The progress that weir crawl shows while it runs (S0-76). The first argument is the program."""
import os
import pty
import re
import signal
import subprocess
import threading
import time

from site_rig import PATIENCE_S, Folder, Held, Nginx, cases, interrupt, site

STEADY = ('--pace', 'strict', '--interval', '300ms', '--max-rate', '100')


def progress_without_a_terminal_is_a_line_every_five_seconds():
    with site() as nginx, Held(nginx, 3) as door, Folder() as folder:
        began_at = time.monotonic()
        process = folder.begin(*STEADY, '--timeout', '1h', door.url)
        lines, times = [], []
        while len(lines) < 2:
            line = process.stderr.readline()
            assert line, 'the crawl has ended'
            if ' in flight, ' in line:
                lines.append(line)
                times.append(time.monotonic() - began_at)
        status, _, errors = door.stop(process)
        assert status == 3 and '\033' not in ''.join(lines) + errors, errors
        assert times[0] > 4.5 and times[1] > 9.5, times
        for line in lines:
            assert re.match(r'\d+ pages?, [\d.]+/s, ETA .*, \d+ in flight, \d+ queued, \d+ failed, \d+ rejected, ', line)


def eta_includes_the_slowest_host():
    """The ETA follows the host with the longest Crawl-delay, though all other hosts would be done
    soon."""
    slow = ('location = /robots.txt { if ($host = 127.0.0.2) { return 200 "User-agent: *\\nCrawl-delay: 30\\n"; } return 404; }'
            'location /s/ { return 200 page; }')
    with Nginx(slow, everywhere=True) as nginx, Folder() as folder:
        folder.write('seeds', ''.join(f'http://127.0.0.{1 + (n < 12)}:{nginx.port}/s/{n}\n' for n in range(1500)))
        process = folder.begin('--pace', 'strict', '--interval', '20ms', '--max-rate', '100', '--seeds-file', 'seeds')
        line = next(line for line in process.stderr if ' in flight, ' in line)
        interrupt(process)
        left = re.search('ETA ([^,]*),', line)[1]
        assert re.match(r'[45]m', left), line  # about 11 times the Crawl-delay of 30 s


def _shown_on_a_terminal(folder, *words, until, count=1, terminal_name='xterm'):
    """Returns the output on a terminal of 80 columns. Interrupts the crawl when it has shown
    `until` this many times."""
    screen, terminal = pty.openpty()
    parts = []

    def read():
        try:
            while part := os.read(screen, 65536):
                parts.append(part)
        except OSError:  # on Linux, a closed terminal reads as an error
            pass

    reader = threading.Thread(target=read)
    process = subprocess.Popen(folder.command(*words), cwd=folder.name, stdin=subprocess.DEVNULL, stdout=terminal,
                               stderr=terminal, env={**os.environ, 'TERM': terminal_name})
    os.close(terminal)
    reader.start()
    end = time.monotonic() + PATIENCE_S
    while b''.join(parts).count(until) < count:
        assert process.poll() is None and time.monotonic() < end, parts
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=PATIENCE_S) == 3
    reader.join()
    os.close(screen)
    return b''.join(parts).decode()


def on_a_terminal_progress_is_drawn_in_place():
    with site() as nginx, Folder() as folder:
        shown = _shown_on_a_terminal(folder, *STEADY, nginx.url, until=b' in flight, ', count=3)
        assert shown.count(' in flight, ') >= 3 and '\033[A\r\033[K' in shown, shown
        lines, row = [''], 0  # the lines left on the screen
        for piece in re.split(r'(\r\n|\033\[A\r\033\[K)', shown):
            if piece == '\r\n':
                row += 1
                lines += [''] * (row + 1 - len(lines))
            elif piece == '\033[A\r\033[K':
                row -= 1
                lines[row] = ''
            else:
                lines[row] += piece
        left = '\n'.join(lines)
        assert ' in flight, ' not in left and 'stopped after' in left and 'finishing the requests in flight' in left, left
        drawn = [line for line in re.split(r'\r\n|\033\[A\r\033\[K', shown) if ' in flight, ' in line]
        assert all(len(line) < 80 for line in drawn), drawn


def lines_on_a_terminal_do_not_mix_with_progress():
    with site() as nginx, Folder() as folder:
        shown = _shown_on_a_terminal(folder, *STEADY, '--out', '-', nginx.url, until=b'"url"', count=4)
        assert '"url"' in shown and '\033' not in shown, shown
        shown = _shown_on_a_terminal(folder, *STEADY, '--state', 'b.db', nginx.url, until=b' in flight, ', terminal_name='dumb')
        assert '\033' not in shown, shown


if __name__ == '__main__':
    cases.main()
