#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Processes that crawl together, whose database is replaced by a replica, or whose clocks are
wrong: judged by the requests that the hosts received.

usage: test_standby.py WEIR CLOCKS        CLOCKS: the library built from clocks.c
"""
import contextlib
import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'cli'), os.path.join(HERE, '..', 'lib')]
import cases  # noqa: E402
from cluster import (  # noqa: E402
    INTERVAL_S, PACE, Clocks, Crawl, Postgres, crawl_alone, judge, star, tree, wait_for, weir)
from road import Road  # noqa: E402

def _fail_over(schema, lose_primary):
    """The primary is lost during a crawl by two processes, and its replica takes over."""
    web, seeds = tree(4, 12)
    alone = crawl_alone(weir(), web, seeds)
    with contextlib.ExitStack() as stack:
        primary = Postgres()
        stack.callback(primary.close)
        replica = Postgres(primary)
        stack.callback(replica.close)
        roads = [stack.enter_context(Road(each.socket)) for each in (primary, replica)]
        crawl = stack.enter_context(Crawl(weir(), primary.schema(schema), [*PACE, *seeds]))
        url = primary.url_by(schema, *roads, more='&target_session_attrs=read-write&connect_timeout=2')
        crawl.start(url=url)
        crawl.start(url=url)
        wait_for(lambda: len(web.seen) > 12, 'some pages')
        lose_primary(primary, roads[0])
        replica.promote()
        crawl.end(0)
        tasks = replica.ask('SELECT count(*), count(DISTINCT url), count(*) FILTER (WHERE state = 1) FROM tasks', schema)
        assert tasks == [[str(len(alone))] * 3], tasks
        web.judge_intervals(INTERVAL_S)
        assert 'not kept' not in ''.join(crawl.errors()), crawl.errors()


def promoted_database_replica_loses_no_page_and_keeps_the_pace():
    _fail_over('over', lambda primary, _: (primary.process.kill(), primary.process.wait()))


def crawl_continues_on_the_replica_of_a_silent_primary():
    _fail_over('silent', lambda _, road: road.cut())


def clocks_an_hour_wrong_break_no_lease_and_no_retry_after():
    told, (web, seeds) = [], star(12)
    alone = crawl_alone(weir(), web, seeds)
    usual, seconds = web.answer, 4

    def answer(port, path):
        if path == '/3' and not told:
            told.append(time.monotonic())
            return 503, [f'Retry-After: {seconds}'], b''
        return usual(port, path)
    web.answer = answer
    with contextlib.closing(Postgres()) as postgres, Crawl(weir(), postgres.schema('hour'), [*PACE, *seeds]) as crawl:
        slow, fast = (Clocks(sys.argv[2], f'{crawl.folder}/{name}') for name in ('slow', 'fast'))
        fast.set(ahead_s=3600.45)  # 3600 s when rounded to whole seconds
        first = crawl.start(env=slow.env)
        wait_for(lambda: len(web.seen) > 2, 'some pages')
        slow.set(ahead_s=-3600.45)  # as if the clock had been set by hand
        wait_for(lambda: told and postgres.ask('SELECT 1 FROM hosts WHERE retry_at_ms > 0', 'hour'),
                 'the time to be stored')
        first.kill()
        first.wait()
        crawl.start(env=fast.env)
        crawl.end(0, -signal.SIGKILL)
        judge(web, crawl, alone, postgres, 'hour', INTERVAL_S, 1)
        later = [seen.at - told[0] for seen in web.seen if seen.at > told[0]]
        assert seconds <= min(later) < seconds + 30, later


if __name__ == '__main__':
    cases.main()
