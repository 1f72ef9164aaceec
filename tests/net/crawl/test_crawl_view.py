#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The live view of weir crawl in a real terminal (tmux), driven by keys and checked by its screen
and the server log."""
import os
import re
import shlex
import subprocess
import time

from site_rig import PATIENCE_S, SLACK_S, Door, Folder, cases, site

STEADY = ('--pace', 'strict', '--interval', '300ms', '--max-rate', '100', '--view', 'full')


class Terminal:
    """A terminal of this size that runs a command until the end of `with`."""

    def __init__(self, folder, words, width=80, height=24, **variables):
        self.socket = os.path.join(folder.name, 'tmux')
        command = f'cd {shlex.quote(folder.name)}; {shlex.join(words)}; echo "ended with $?"; sleep 600'
        self._tmux('-f', '/dev/null', 'new-session', '-d', '-x', str(width), '-y', str(height), '-s', 'view', command,
                   env=dict(os.environ, LC_ALL='C.UTF-8', **variables))

    def __enter__(self):
        return self

    def __exit__(self, *why):
        subprocess.run(['tmux', '-S', self.socket, 'kill-server'], check=False)

    def _tmux(self, *words, **more):
        return subprocess.run(['tmux', '-S', self.socket, *words], check=True, capture_output=True, text=True, timeout=PATIENCE_S,
                              **more).stdout

    def type(self, *keys):
        self._tmux('send-keys', '-t', 'view', *keys)

    def resize(self, width, height):
        self._tmux('resize-window', '-t', 'view', '-x', str(width), '-y', str(height))

    def screen(self, *more):
        return self._tmux('capture-pane', '-t', 'view', '-p', *more)

    def shows(self, *words):
        """Waits until the screen has all the words, and returns it."""
        until = time.monotonic() + PATIENCE_S
        while not all(word in (screen := self.screen()) for word in words):
            assert time.monotonic() < until, f'no {words} in:\n{screen}'
            time.sleep(0.05)
        return screen


def _requests(nginx):
    return len(nginx.log())


def view_shows_each_host_with_its_reason_at_every_size():
    with site() as nginx, Folder() as folder, Terminal(folder, folder.command(*STEADY, nginx.url)) as terminal:
        for width, height in ((80, 24), (40, 15), (200, 60)):
            terminal.resize(width, height)
            key = nginx.url.removeprefix('http://')
            lines = terminal.shows('HOST', 'WAITS FOR', key[:13], 'pace', ' pages').splitlines()
            deadline = time.monotonic() + PATIENCE_S
            while len(lines) != height or lines[3][:6] != '  HOST':
                assert time.monotonic() < deadline, '\n'.join(lines)
                lines = terminal.screen().splitlines()
            assert max(map(len, lines)) <= width and lines[4].startswith(f'> {key[:13]}'), '\n'.join(lines)
        terminal.shows('s sort: wait', 'QUEUED', 'LIMIT')


def key_p_pauses_and_resumes_a_host():
    with site() as nginx, Folder() as folder, Terminal(folder, folder.command(*STEADY, nginx.url)) as terminal:
        terminal.shows(' pace ')
        terminal.type('p')
        terminal.shows(' paused ', '1 paused')
        folder.await_quiet(nginx)
        before = _requests(nginx)
        time.sleep(1.5)
        assert _requests(nginx) == before
        terminal.type('p')
        terminal.shows(' resumed', '0 paused')
        until = time.monotonic() + PATIENCE_S
        while _requests(nginx) == before:
            assert time.monotonic() < until
            time.sleep(0.1)


def typed_interval_applies_to_the_next_requests():
    with site() as nginx, Door(nginx) as door, Folder() as folder, Terminal(folder, folder.command(*STEADY, door.url)) as terminal:
        terminal.shows(' pace ')
        terminal.type('i')
        terminal.shows('time between requests to')
        terminal.type('2', 's', 'Enter')
        terminal.shows('interval: 2.0 s')
        before, end = len(door.gaps()), time.monotonic() + PATIENCE_S
        while len(door.gaps()) < before + 3:
            assert time.monotonic() < end
            time.sleep(0.1)
        assert min(door.gaps()[before + 1:]) >= 2 - SLACK_S, door.gaps()
        terminal.type('i', 'x', 'Enter')
        terminal.shows('not a duration')


def view_filters_and_sorts_hosts_by_keys():
    with site() as nginx, Folder() as folder, Terminal(folder, folder.command(*STEADY, nginx.url)) as terminal:
        terminal.shows('sort: wait')
        terminal.type('s')
        terminal.shows('sort: queue')
        terminal.type('r')
        terminal.shows('sort: queue reversed')
        terminal.type('/', 'n', 'o', 'n', 'e', 'Enter')
        terminal.shows('no host name contains "none"')
        terminal.type('/', 'Escape')
        terminal.shows('> 127.0.0.1')


def key_q_stops_the_crawl_and_restores_the_terminal():
    with site() as nginx, Folder() as folder, Terminal(folder, folder.command(*STEADY, nginx.url)) as terminal:
        terminal.shows(' pace ')
        terminal.type('q')
        terminal.shows('ended with 3', 'continue with: weir crawl')
        lines = len(folder.lines())
        assert folder.crawl('--resume', '--pace', 'unlimited').returncode == 0
        assert len(folder.lines()) > lines


def view_uses_no_colours_or_unicode_if_disabled():
    with site() as nginx, Folder() as folder:
        with Terminal(folder, ['env', 'NO_COLOR=1', 'LC_ALL=C', *folder.command(*STEADY, nginx.url)]) as terminal:
            terminal.shows(' pace ', 'MINUTE')
            time.sleep(1)
            screen = terminal.screen('-e')
            assert not re.search('\033\\[(2|3[0-7])m', screen) and screen.isascii(), screen


def view_lines_prints_lines_on_a_terminal():
    with site() as nginx, Folder() as folder:
        words = [*folder.command(*STEADY[:-1], 'lines', '--max-time', '6s', nginx.url)]
        with Terminal(folder, words, width=200) as terminal:
            terminal.shows(' in flight, ')
            assert 'WAITS FOR' not in terminal.screen()


def dumb_terminal_gets_lines():
    with site() as nginx, Folder() as folder:
        with Terminal(folder, ['env', 'TERM=dumb', *folder.command(*STEADY, nginx.url)], width=200) as terminal:
            terminal.shows(' in flight, ')
            assert 'WAITS FOR' not in terminal.screen()


if __name__ == '__main__':
    cases.main()
