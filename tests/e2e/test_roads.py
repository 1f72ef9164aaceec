#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Processes that crawl together over bad links to their database: judged by the requests that the
hosts received, and by comparison with a crawl by one process.

usage: test_roads.py WEIR CLOCKS        CLOCKS: the library built from clocks.c
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
    INTERVAL_S, LEASE_S, PACE, PATIENCE_S, Clocks, Crawl, crawl_alone, judge, postgres, star, tree, wait_for, weir)
from road import Road, chance, disturb  # noqa: E402


def _crawl(schema, seeds, *words):
    return Crawl(weir(), postgres().schema(schema), [*PACE, *words, *seeds])


def _seen_since(web, at):
    return [round(seen.at - at, 2) for seen in list(web.seen) if seen.at > at]


def process_without_database_stops_at_lease_end_and_another_continues():
    web, seeds = star(24)
    alone = crawl_alone(weir(), web, seeds)
    with Road(postgres().socket) as road, _crawl('cut', seeds) as crawl:
        first = crawl.start(url=postgres().url_by('cut', road))
        wait_for(lambda: len(web.seen) > 4, 'some pages')
        road.cut()
        cut_at = time.monotonic()
        time.sleep(LEASE_S + 1)
        seen = _seen_since(web, cut_at)
        assert len(seen) > 1 and seen[-1] < LEASE_S and first.poll() is None, (seen, crawl.errors())
        crawl.start()
        wait_for(lambda: len(_seen_since(web, cut_at)) > len(seen) + 4, 'the other to go on')
        road.mend()
        crawl.end(0)
        judge(web, crawl, alone, postgres(), 'cut', INTERVAL_S, LEASE_S / INTERVAL_S)


def bad_links_to_the_database_lose_no_page_and_keep_the_pace():
    web, seeds = tree(6, 24)
    alone = crawl_alone(weir(), web, seeds)
    with contextlib.ExitStack() as stack:
        roads = [stack.enter_context(Road(postgres().socket)) for _ in range(3)]
        crawl = stack.enter_context(_crawl('roads', seeds))
        for road in roads:
            crawl.start(url=postgres().url_by('roads', road))
        wait_for(lambda: web.seen and len(postgres().ask('SELECT id FROM nodes', 'roads')) == len(roads), 'all to begin')
        count = disturb(roads, 5, chance())
        crawl.end(0)
        judge(web, crawl, alone, postgres(), 'roads', INTERVAL_S, count)


def _end_without_database(name, signals, most_s):
    """Starts a crawl, makes its database unresponsive, sends `signals` SIGTERMs, and returns the
    messages of the crawl."""
    web, seeds = star(100)
    with Road(postgres().socket) as road, _crawl(name, seeds) as crawl:
        process = crawl.start(url=postgres().url_by(name, road, more='&connect_timeout=1'))
        wait_for(lambda: len(web.seen) > 3, 'some pages')
        road.cut()
        begin = time.monotonic()
        for _ in range(signals):
            process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
        process.wait(PATIENCE_S)
        took = time.monotonic() - begin
        assert process.returncode == 3 and took < most_s, (took, crawl.errors())
        return crawl.errors()


def crawl_whose_database_hangs_ends_in_time_on_sigterm():
    errors = _end_without_database('hangs', 2, 40)  # one call without a reply, and two attempts to connect
    assert 'it can be resumed' in errors[0], errors


def crawl_whose_database_hangs_does_not_wait_out_its_drain():
    _end_without_database('silent', 1, 28)  # waiting for the drain alone would take 30 s


def _end_by_time(name, break_road):
    """Runs a crawl whose time limit ends after its database is lost, without any signal; checks its
    message and its status."""
    web, seeds = star(100)
    with Road(postgres().socket) as road, _crawl(name, seeds, '--max-time', '4s') as crawl:
        process = crawl.start(url=postgres().url_by(name, road, more='&connect_timeout=1'))
        wait_for(lambda: len(web.seen) > 3, 'some pages')
        break_road(road)
        process.wait(PATIENCE_S)  # the link is still broken
        assert process.returncode == 3, (process.returncode, crawl.errors())
        assert 'the time limit was reached (--max-time)' in crawl.errors()[0], crawl.errors()
        status = postgres().ask('SELECT status FROM jobs', name)
        assert status == [['running']], status  # another process may continue the job


def time_limit_ends_a_crawl_whose_database_hangs():
    _end_by_time('timed', Road.cut)


def time_limit_ends_a_crawl_whose_database_is_gone():
    def end(road):
        road.lead_to('/nowhere')  # all connections are reset, and new ones are refused
    _end_by_time('gone', end)


def machine_waking_from_sleep_starts_no_request_before_the_database():
    web, seeds = star(24)
    alone = crawl_alone(weir(), web, seeds)
    with Road(postgres().socket) as road, _crawl('slept', seeds, '--lease', '60s') as crawl:
        clocks = Clocks(sys.argv[2], f'{crawl.folder}/clocks')
        crawl.start(url=postgres().url_by('slept', road), env=clocks.env)
        wait_for(lambda: len(web.seen) > 4, 'some pages')
        road.cut()
        seen = len(web.seen)
        wait_for(lambda: len(web.seen) > seen + 4, 'leases that last')
        clocks.set(slept_s=3600)
        slept_at = time.monotonic() + 0.1
        time.sleep(4 * INTERVAL_S)
        assert not _seen_since(web, slept_at), _seen_since(web, slept_at)
        road.mend()
        crawl.end(0)
        judge(web, crawl, alone, postgres(), 'slept', INTERVAL_S, 24)


if __name__ == '__main__':
    cases.main()
