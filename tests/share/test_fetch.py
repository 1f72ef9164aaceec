#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Processes of weir fetch on one origin, through one real Redis: by the origin's log they are one.

usage: test_fetch.py WEIR

That no two starts are too close is shown to the nanosecond by test_share_baton, in virtual time. Here a process may be
held up between deciding and writing, on a machine that has much to do: a gap counts as short if it is half of what it
should be, and two of them may be.
"""
import atexit
import functools
import json
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'cli')]

import cases  # noqa: E402
from crew import Crew  # noqa: E402
from origin import Bucket, Origin  # noqa: E402
from store import Redis  # noqa: E402

STRICT = ['--pace', 'strict', '--interval', '100ms']
PATIENCE = 60


@functools.lru_cache
def _redis():
    """One for all who do not kill it: one that is new gives no turns at first."""
    redis = Redis()
    atexit.register(redis.__exit__)
    return redis


def _crew(origin, redis, count, urls, *options):
    return Crew(sys.argv[1], origin, [redis.url], count, urls, *options)


def _always(_at, _path):
    return 200, ''


def _wait(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, 'that took too long'
        time.sleep(0.01)


def _pages(origin):
    """Those that were answered well."""
    return {path for _, path, status, _ in origin.log if status == 200}


def ten_processes_start_an_interval_apart():
    with Origin(_always) as origin, _crew(origin, _redis(), 10, 3, *STRICT) as crew:
        assert crew.wait() == [0] * 10
        origin.judge_gaps(0.1)
        assert len(origin.log) == 30 and len(_pages(origin)) == 30


def ten_processes_are_rejected_as_rarely_as_one():
    with Origin(Bucket(5, 2)) as origin, \
            _crew(origin, _redis(), 10, 4, '--max-rate', '100', '--per-host', '8') as crew:
        assert crew.wait() == [0] * 10
        rejected = sum(status == 429 for _, _, status, _ in origin.log)
        assert len(_pages(origin)) == 40 and rejected <= 8, rejected  # one alone: 1; ten that know nothing of each other: 30


def retry_after_told_to_one_stops_all():
    told = []

    def answer(at, path):
        if not told and path.endswith('/4'):
            told.append(at)
            return 429, 'Retry-After: 3\r\n'
        return 200, ''

    with Origin(answer) as origin, _crew(origin, _redis(), 3, 8, '--pace', 'strict', '--interval', '50ms') as crew:
        assert crew.wait() == [0] * 3
        late = [at - told[0] for at, _, _, _ in origin.log if told[0] + 1 < at < told[0] + 2.9]
        assert not late, late  # within a second, here; on a machine that is idle, within 25 ms
        assert len(_pages(origin)) == 24


def _last(origin):
    """Who started last, and has the turn, most likely."""
    return int(max(origin.log)[3][1:])


def holders_that_are_stopped_or_killed_are_succeeded():
    with Origin(_always) as origin, _crew(origin, _redis(), 4, 8, *STRICT) as crew:
        _wait(lambda: len(origin.log) >= 6)
        stopped = crew.processes[_last(origin)]
        stopped.send_signal(signal.SIGSTOP)
        seen = len(origin.log)
        _wait(lambda: len(origin.log) >= seen + 4)
        killed = _last(origin)
        crew.processes[killed].kill()
        stopped.send_signal(signal.SIGCONT)  # now that its turn is over: what it was about to send it does not
        ended = crew.wait()
        assert [code for i, code in enumerate(ended) if i != killed] == [0] * 3, ended
        origin.judge_gaps(0.1)
        for i in range(4):
            assert i == killed or sum(who == f'p{i}' for _, _, _, who in origin.log) == 8


def without_the_store_nothing_starts_and_with_it_all_goes_on():
    with Redis() as redis, Origin(_always) as origin, _crew(origin, redis, 3, 12, *STRICT) as crew:
        _wait(lambda: len(origin.log) >= 6)
        redis.kill()
        _wait(lambda: all('cannot be reached' in crew.said(i) for i in range(3)))
        assert all(text in crew.said(0) for text in ('at most --max-defer', 'restart without --share')), crew.said(0)
        killed = time.time()
        time.sleep(4)  # a turn lasts two seconds at most
        late = [at - killed for at, _, _, _ in origin.log if at > killed + 3]
        assert not late and len(origin.log) < 36, late
        redis.start()
        assert crew.wait() == [0] * 3
        assert all('can be reached again' in crew.said(i) for i in range(3))
        origin.judge_gaps(0.1)
        assert len(_pages(origin)) == 36


def who_waits_for_the_share_says_so_and_not_robots_txt():
    """The page waits for robots.txt, which waits for its turn at the host."""
    with Redis() as redis, Origin(_always) as origin:
        redis.kill()
        run = subprocess.run([sys.argv[1], 'fetch', '--allow-private', '--share', f'unix:{redis.path}', '--max-defer', '1s', origin.url('0')],
                             capture_output=True, text=True, timeout=PATIENCE, check=False)
        line = json.loads(run.stdout)
        assert (run.returncode, line['failure'], line['detail'], line['waited_for']) == (1, 'deferred', 'share', 'share'), run
        assert not origin.log


if __name__ == '__main__':
    cases.main()
