#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Processes of weir fetch on one origin, through one real Redis: the origin's log looks like that
of one process.

usage: test_fetch.py WEIR

test_share_baton shows to the nanosecond, in virtual time, that no two starts are too close. Here a
process may be delayed between deciding and writing on a busy machine: a gap is too short if it is
less than half of the interval, and two such gaps are allowed.
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
    """Returns a store for all tests that do not kill it: a new store gives no turns at first."""
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
        assert time.monotonic() < end, 'timeout'
        time.sleep(0.01)


def _pages(origin):
    """Returns the pages that got status 200."""
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
        # one process alone: 1; ten processes that share nothing: 30
        assert len(_pages(origin)) == 40 and rejected <= 8, rejected


def retry_after_received_by_one_process_stops_all():
    told = []

    def answer(at, path):
        if not told and path.endswith('/4'):
            told.append(at)
            return 429, 'Retry-After: 3\r\n'
        return 200, ''

    with Origin(answer) as origin, _crew(origin, _redis(), 3, 8, '--pace', 'strict', '--interval', '50ms') as crew:
        assert crew.wait() == [0] * 3
        late = [at - told[0] for at, _, _, _ in origin.log if told[0] + 1 < at < told[0] + 2.9]
        assert not late, late  # a second is the tolerance here; on an idle machine all stop within 25 ms
        assert len(_pages(origin)) == 24


def _last(origin):
    """Returns the process that started last, which most likely has the turn."""
    return int(max(origin.log)[3][1:])


def suspended_or_killed_holders_of_the_gate_are_replaced():
    with Origin(_always) as origin, _crew(origin, _redis(), 4, 8, *STRICT) as crew:
        _wait(lambda: len(origin.log) >= 6)
        stopped = crew.processes[_last(origin)]
        stopped.send_signal(signal.SIGSTOP)
        seen = len(origin.log)
        _wait(lambda: len(origin.log) >= seen + 4)
        killed = _last(origin)
        crew.processes[killed].kill()
        stopped.send_signal(signal.SIGCONT)  # its turn is over: it must not send the request that it was about to send
        ended = crew.wait()
        assert [code for i, code in enumerate(ended) if i != killed] == [0] * 3, ended
        origin.judge_gaps(0.1)
        for i in range(4):
            assert i == killed or sum(who == f'p{i}' for _, _, _, who in origin.log) == 8


def nothing_starts_without_the_store_and_all_resume_with_it():
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


def page_waiting_for_the_shared_gate_reports_share_not_robots():
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
