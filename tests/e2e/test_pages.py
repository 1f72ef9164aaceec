#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Page and byte limits of a crawl that several processes share on PostgreSQL while one is killed:
judged by the requests that the hosts received.

usage: test_pages.py WEIR
"""
import collections
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'cli'))
import cases  # noqa: E402
from cluster import Crawl, fetched_twice, postgres, tree, wait_for, weir  # noqa: E402

_HOSTS, _PAGES = 6, 63


def _pages(web):
    """Returns the pages that were requested, as {(port, path)}."""
    return {(seen.port, seen.path) for seen in list(web.seen) if seen.path != '/robots.txt'}


def _left_out(crawl):
    """Returns the number of links that were left out, from the reports of the processes that ended
    normally."""
    reports = [f'{process.out}.json' for process in crawl.running if process.returncode == 0]
    return sum(json.load(open(name, encoding='utf-8'))['links_beyond_pages'] for name in reports)


def _start(crawl):
    crawl.start('--report', f'{crawl.folder}/out-{len(crawl.running)}.jsonl.json')


def _crawl_and_kill_one(schema, *budget):
    """Crawls with three processes, kills one and starts another in its place. Returns the requested
    pages."""
    web, seeds = tree(_HOSTS, _PAGES)
    crawl = Crawl(weir(), postgres().schema(schema),
                  # A process that a busy machine delays for longer than its lease loses its hosts:
                  # their pages are then requested twice.
                  ['--lease', '6s', '--pace', 'strict', '--interval', '80ms', '--loops', '2', *budget, *seeds])
    with crawl:
        for _ in range(3):
            _start(crawl)
        wait_for(lambda: len(_pages(web)) > 40, 'some pages')
        crawl.running[0].kill()
        killed_at = time.monotonic()
        _start(crawl)
        crawl.end(0, -signal.SIGKILL)
        pages = _pages(web)
        twice, unexplained = fetched_twice(web, [killed_at])
        states = postgres().ask('SELECT state, count(*) FROM tasks GROUP BY state', schema)
        left_out = _left_out(crawl)
        print(f'{len(pages)} pages, {twice} of them asked for twice, {left_out} links left out')
        assert states == [['1', str(len(pages))]], (states, crawl.errors())
        assert not unexplained, unexplained
        assert left_out > 0
        assert postgres().ask('SELECT status FROM jobs', schema) == [['completed']]
    return pages


def max_pages_holds_for_all_processes_together():
    pages = _crawl_and_kill_one('pages', '--max-pages', '131')
    assert len(pages) == 131, len(pages)


def host_pages_holds_for_all_processes_together():
    pages = _crawl_and_kill_one('hosts', '--host-pages', '23')
    by_host = collections.Counter(port for port, _ in pages)
    assert set(by_host.values()) == {23} and len(by_host) == _HOSTS, by_host


def max_bytes_holds_per_process_and_other_processes_continue():
    web, seeds = tree(2, 15)
    answer = web.answer
    web.answer = lambda port, path: (lambda status, fields, body: (status, fields, body + 20000 * b' '))(*answer(port, path))
    url = postgres().schema('bytes')
    with Crawl(weir(), url, ['--pace', 'unlimited', '--concurrency', '1', '--lease', '1s', '--max-bytes', '200K', *seeds]) as crawl:
        for number in range(1, 3):
            crawl.start()
            crawl.end(3)
            assert 8 * number <= len(_pages(web)) <= 13 * number, len(_pages(web))
            assert postgres().ask('SELECT status FROM jobs', 'bytes') == [['running']]
        crawl.start()
        crawl.wait()
        assert crawl.running[-1].returncode == 0, crawl.errors()
        assert len(_pages(web)) == 30 and fetched_twice(web, []) == (0, []), web.seen


if __name__ == '__main__':
    cases.main()
