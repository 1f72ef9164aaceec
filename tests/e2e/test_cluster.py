#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Several processes that crawl together on PostgreSQL while some are killed, stopped and started:
judged by the requests that the hosts received, and by comparison with a crawl by one process.

usage: test_cluster.py WEIR [HOSTS PAGES SECONDS]    the first test only: larger, disturbed for
SECONDS

The seed WEIR_TEST_SEED determines the sequence of disturbances.
"""
import collections
import json
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'cli'))
import cases  # noqa: E402
from cluster import (  # noqa: E402
    PATIENCE_S, Crawl, Web, crawl_alone, fetched_twice, judge, postgres, tree, wait_for, weir)

_HOSTS, _PAGES, _SECONDS = (int(word) for word in sys.argv[2:5]) if len(sys.argv) > 2 else (8, 16, 5)
_IS_LONG = len(sys.argv) > 2
# The crawl must not end before the last disturbance: fetching PAGES takes longer than SECONDS.
_INTERVAL_S = 1 if _IS_LONG else 0.5
_LEASE_S = 5 if _IS_LONG else 4  # a busy machine may delay a process by a second
_AT_ONCE = 4


# ---- killed, stopped and started ----

def _disturb(crawl, seconds, chance):
    """Kills, stops (for longer than the lease), ends and starts processes at random, at most four
    at a time. Returns [(action, time)]."""
    until = time.monotonic() + seconds
    stopped, done = {}, []
    while time.monotonic() < until and crawl.alive():
        time.sleep(chance.uniform(0.3, 1.2))
        for each in [each for each, at in stopped.items() if time.monotonic() > at]:
            each.send_signal(signal.SIGCONT)
            del stopped[each]
        alive = [each for each in crawl.alive() if each not in stopped]
        what = chance.choice(['kill', 'stop', 'end', 'start', 'start'])
        if what == 'start' and len(crawl.alive()) < _AT_ONCE:
            crawl.start()
        elif what == 'stop' and len(alive) > 1:
            victim = chance.choice(alive)
            victim.send_signal(signal.SIGSTOP)
            stopped[victim] = time.monotonic() + chance.uniform(1.2, 2.5) * _LEASE_S
        elif what in ('kill', 'end') and len(alive) > 1:
            chance.choice(alive).send_signal(signal.SIGKILL if what == 'kill' else signal.SIGTERM)
        else:
            continue
        done.append((what, time.monotonic()))
    for each in stopped:
        each.send_signal(signal.SIGCONT)
    return done


def _judge_disturbed(web, done):
    count, unexplained = fetched_twice(web, [at for what, at in done if what in ('kill', 'stop')])
    deadlocks = int(postgres().ask('SELECT sum(deadlocks) FROM pg_stat_database')[0][0])
    print(f'{dict(collections.Counter(what for what, _ in done))}; {count} fetched twice, of them {len(unexplained)} that were not '
          f'under way when a process was killed or stopped; {deadlocks} deadlocks')
    assert not unexplained, f'fetched twice: {unexplained[:3]}, disturbed: {done}'
    assert deadlocks == 0


def killed_stopped_and_started_processes_lose_no_page_and_keep_the_pace():
    seed = int(os.environ.get('WEIR_TEST_SEED', time.time()))
    print(f'WEIR_TEST_SEED={seed}')
    web, seeds = tree(_HOSTS, _PAGES)
    alone = crawl_alone(weir(), web, seeds)
    assert len(alone) == _HOSTS * _PAGES, len(alone)
    url = postgres().schema('chaos')
    crawl = Crawl(weir(), url, ['--lease', f'{_LEASE_S}s', '--pace', 'strict', '--interval', f'{_INTERVAL_S}s',
                                '--failure-threshold', '0', *seeds])
    try:
        for _ in range(_AT_ONCE):
            crawl.start()
        done = _disturb(crawl, _SECONDS, random.Random(seed))
        if not crawl.alive():
            crawl.start()
        crawl.wait(2 * (_PAGES + 2) * _INTERVAL_S + 120)
        statuses = {each.returncode for each in crawl.running}
        assert statuses <= {0, 3, -signal.SIGKILL}, (statuses, crawl.errors())
        jobs = postgres().ask('SELECT id, status FROM jobs', 'chaos')
        assert jobs == [['1', 'completed']], (jobs, crawl.errors())
        judge(web, crawl, alone, postgres(), 'chaos', _INTERVAL_S, len(done))
        _judge_disturbed(web, done)
    finally:
        crawl.close()


# ---- secrets ----

def _slow(port, path):
    """Answers with an endless site: each page links to the next."""
    if path == '/robots.txt':
        return 404, [], b''
    return 200, ['Content-Type: text/html'], f'<a href="{path}1">x</a>'.encode()


def _texts(folder):
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), 'rb') as file:
            yield name, file.read()


def database_passwords_are_neither_shown_nor_stored():
    web = Web(1, _slow)
    url = postgres().schema('secrets').replace('postgres:///', 'postgres://weir:s3cret@/')
    crawl = Crawl(weir(), url, ['--interval', '200ms', f'http://127.0.0.1:{web.ports[0]}/'])
    try:
        process = crawl.start('--log', 'log', '--report', 'report.json')
        wait_for(lambda: len(web.seen) > 3, 'some pages')
        with open(f'/proc/{process.pid}/cmdline', 'rb') as file:
            words = file.read()
        assert b'postgres://weir:xxxxxx@' in words and b's3cret' not in words, words
        process.send_signal(signal.SIGTERM)
        crawl.wait()
        assert process.returncode == 3, crawl.errors()
        for name, text in _texts(crawl.folder):
            assert b's3cret' not in text, (name, text)
        for words in (['--resume', '--job', '9'], ['--recrawl'], ['--recrawl', '--job', '9'], ['--group-by', 'ip', 'a.example']):
            run = subprocess.run([weir(), 'crawl', '--state', url, *words], capture_output=True, text=True,
                                 cwd=crawl.folder, timeout=PATIENCE_S)
            assert run.returncode != 0 and 's3cret' not in run.stdout + run.stderr, run
        dump = subprocess.run(['pg_dump', '--inserts', '-n', 'secrets', postgres().url()], capture_output=True,
                              check=True, timeout=PATIENCE_S)
        assert b's3cret' not in dump.stdout and b'INSERT INTO secrets.tasks' in dump.stdout
    finally:
        crawl.close()


# ---- state that follows a host to another process ----

def _asks_for_time(seconds):
    told = []

    def answer(port, path):
        if path == '/robots.txt':
            return 404, [], b''
        if not told:
            told.append(time.monotonic())
            return 503, [f'Retry-After: {seconds}'], b''
        return 200, ['Content-Type: text/html'], b'x'
    return told, answer


def retry_after_of_a_killed_process_binds_the_next():
    seconds = 6
    told, answer = _asks_for_time(seconds)
    web = Web(1, answer)
    crawl = Crawl(weir(), postgres().schema('named'), ['--lease', '1s', '--interval', '100ms',
                                                       f'http://127.0.0.1:{web.ports[0]}/'])
    try:
        first = crawl.start()
        wait_for(lambda: postgres().ask('SELECT 1 FROM hosts WHERE retry_at_ms > 0', 'named') if told else None,
                 'the time to be stored')
        first.kill()
        first.wait()
        crawl.start().wait(timeout=PATIENCE_S)
        assert postgres().ask('SELECT status FROM jobs', 'named') == [['completed']], crawl.errors()
        later = [seen for seen in web.seen if seen.at > told[0]]
        assert later and later[0].at - told[0] >= seconds - 0.1, (told, web.seen)
    finally:
        crawl.close()


_NAMED_S, _DELAY_S, _SELDOM = 5, 4, 2


def _three_that_want_peace(ports, told):
    """The first host sends a Retry-After, the second has a long Crawl-delay, the third has many
    pages."""
    def answer(port, path):
        which = ports.index(port)
        if path == '/robots.txt':
            return (200, [], f'User-agent: *\nCrawl-delay: {_DELAY_S}\n'.encode()) if which == 1 else (404, [], b'')
        if which == 0 and not told:
            told.append(time.monotonic())
            return 503, [f'Retry-After: {_NAMED_S}'], b''
        links = ''.join(f'<a href="/{n}">x</a>' for n in range(1, (1, _SELDOM, 12)[which]))
        return 200, ['Content-Type: text/html'], links.encode()
    return answer


def hosts_with_long_waits_are_released_and_resumed_by_any_process():
    ports, told = [], []
    web = Web(3, _three_that_want_peace(ports, told))
    ports.extend(web.ports)
    url = postgres().schema('rests')
    paused = f'127.0.0.1:{ports[2]}'
    crawl = Crawl(weir(), url, ['--lease', '1s', '--interval', '300ms',
                                *(f'http://127.0.0.1:{port}/' for port in ports)])

    def steer(word):
        subprocess.run([weir(), 'hosts', word, paused, '--state', url], check=True, capture_output=True,
                       timeout=PATIENCE_S)

    def resting():
        return postgres().ask("SELECT host FROM hosts WHERE lease_owner = 0 AND rest_until > clock_timestamp()"
                              " AND (rest_until = 'infinity') = (paused = 1)", 'rests')
    try:
        first = crawl.start()
        wait_for(lambda: told and len(web.paths(ports[2])) > 2, 'some pages')
        steer('pause')
        wait_for(lambda: len(resting()) == 3, 'the hosts to be left')
        seen = len(web.paths(ports[2]))
        second = crawl.start()
        first.send_signal(signal.SIGTERM)
        assert first.wait(timeout=PATIENCE_S) == 3, crawl.errors()
        wait_for(lambda: web.paths(ports[0]).count('/') == 2, 'the host that named a time')
        assert len(web.paths(ports[2])) == seen, web.paths(ports[2])
        steer('resume')
        assert second.wait(timeout=PATIENCE_S) == 0, crawl.errors()
        later = [seen for seen in web.seen if seen.port == ports[0] and seen.at > told[0]]
        assert _NAMED_S - 0.1 <= later[0].at - told[0] < 2 * _NAMED_S, (told, web.seen)
        intervals = web.intervals(ports[1])
        assert len(intervals) == _SELDOM and min(intervals) >= _DELAY_S - 0.1 and max(intervals) < 2 * _DELAY_S, intervals
        assert len(web.paths(ports[2])) == 13, web.paths(ports[2])
    finally:
        crawl.close()


# ---- hosts that redirect to other hosts ----

def _ring(ports, pages):
    """The robots.txt of each host redirects to the rules of the next host, and some of its pages
    redirect to pages of the next."""
    def answer(port, path):
        beside = ports[(ports.index(port) + 1) % len(ports)]
        if path == '/robots.txt':
            return 302, [f'Location: http://127.0.0.1:{beside}/rules'], b''
        if path == '/rules':
            return 200, ['Content-Type: text/plain'], b'User-agent: *\nDisallow: /forbidden\n'
        if path.startswith('/led'):
            return 200, ['Content-Type: text/html'], b''
        if path.startswith('/leads'):
            return 302, [f'Location: http://127.0.0.1:{beside}/led{path[6:]}'], b''
        links = [f'/{n}' for n in range(pages)] + [f'/leads{n}' for n in range(pages)] + ['/forbidden']
        return 200, ['Content-Type: text/html'], ''.join(f'<a href="{link}">x</a>' for link in links).encode()
    return answer


def redirects_to_hosts_of_other_processes_keep_the_pace():
    hosts, pages, interval_s = 7, 2, 0.4
    ports = []
    web = Web(hosts, _ring(ports, pages))
    ports.extend(web.ports)
    seeds = [f'http://127.0.0.1:{port}/' for port in ports]
    crawl = Crawl(weir(), postgres().schema('ring'), ['--lease', '1500ms', '--pace', 'strict', '--interval',
                                                      f'{interval_s}s', '--failure-threshold', '0', *seeds])
    try:
        for _ in range(3):
            crawl.start()
        crawl.wait()
        assert {each.returncode for each in crawl.running} == {0}, crawl.errors()
        ended = postgres().ask('SELECT verdict, count(*) FROM tasks GROUP BY verdict ORDER BY verdict', 'ring')
        assert ended == [['fetched', str(hosts * (1 + 2 * pages))], ['redirect', str(hosts * pages)],
                         ['robots', str(hosts)]], ended
        web.judge_intervals(interval_s)
        asked = collections.Counter(seen.path for seen in web.seen if seen.path in ('/robots.txt', '/rules'))
        print(f'{len(web.seen)} requests, {dict(asked)}')
    finally:
        crawl.close()


def pages_with_arbitrary_bytes_are_stored_with_one_line_each():
    def answer(port, path):
        if path == '/robots.txt':
            return 200, ['Content-Type: text/plain', 'ETag: "\xff\xfe"'], b'User-agent: *\nDisallow: /none\xff\x00\n'
        links = b'<a href="/%00">1</a><a href="/\xff\xed\xa0\x80">2</a><a href="/\x00\x01">3</a><a href="/\xf0\x9f">4</a>'
        title = b'<title>\x00\xff\xed\xa0\x80\xf4\x90\x80\x80</title>'
        return 200, ['Content-Type: text/html', 'ETag: "\xe9\xff"'], title + (links if path == '/' else b'')
    web = Web(1, answer)
    crawl = Crawl(weir(), postgres().schema('bytes'), ['--pace', 'unlimited', f'http://127.0.0.1:{web.ports[0]}/'])
    try:
        process = crawl.start()
        process.wait(timeout=PATIENCE_S)
        assert process.returncode == 0, crawl.errors()
        with open(process.out, 'rb') as file:
            lines = [json.loads(line.decode()) for line in file.read().splitlines()]
        asked = {seen.path for seen in web.seen} - {'/robots.txt'}
        assert len(lines) == len({line['url'] for line in lines}) == len(asked) > 2, (asked, lines)
        assert postgres().ask('SELECT count(*) FROM tasks WHERE state != 1', 'bytes') == [['0']]
    finally:
        crawl.close()


# ---- without killed processes ----

def processes_started_together_fetch_each_page_once():
    """Pages link to all other hosts, and hosts move between processes; no process is killed."""
    web, seeds = tree(24, 12)
    with Crawl(weir(), postgres().schema('once'), ['--pace', 'unlimited', *seeds]) as crawl:
        for _ in range(_AT_ONCE):
            crawl.start()
        crawl.end(0)
        pages = collections.Counter((seen.port, seen.path) for seen in web.seen if seen.path != '/robots.txt')
        assert len(pages) == 24 * 12 and set(pages.values()) == {1}, pages.most_common(3)
        nodes = postgres().ask('SELECT count(DISTINCT path) FROM outputs WHERE bytes > 0', 'once')
        print(f'{nodes[0][0]} of {_AT_ONCE} processes had pages')


def page_that_takes_long_to_archive_is_fetched_once():
    """A process releases a host that has nothing to do, but only after every result is stored."""
    body = os.urandom(64 << 20)  # compressing this takes seconds, longer than an idle host is kept
    web = Web(1, lambda port, path: (404, [], b'') if path == '/robots.txt' else (200, ['Content-Type: image/x'], body))
    crawl = Crawl(weir(), postgres().schema('archive'), ['--pace', 'unlimited', '--max-body', '128M', f'http://127.0.0.1:{web.ports[0]}/'])
    try:
        for name in ('one', 'other'):
            crawl.start('--warc', name)
        crawl.wait()
        assert postgres().ask('SELECT status FROM jobs', 'archive') == [['completed']], crawl.errors()
        assert sorted(web.paths(web.ports[0])) == ['/', '/robots.txt'], web.seen
    finally:
        crawl.close()


def hosts_stay_with_a_process_when_they_move_between_its_threads():
    """Each host is claimed once, and moving hosts between the threads of a process loses nothing,
    although the threads hold different numbers of hosts."""
    hosts, pages = 64, 12

    def answer(port, path):
        links = ''.join(f'<a href="/{n}">x</a>' for n in range(1, pages) if path == '/')
        return (404, [], b'') if path == '/robots.txt' else (200, ['Content-Type: text/html'], links.encode())
    web = Web(hosts, answer)
    crawl = Crawl(weir(), postgres().schema('threads'), ['--loops', '16', '--lease', '6s', '--pace', 'strict', '--interval',
                                                         '0.3s', *(f'http://127.0.0.1:{port}/' for port in web.ports)])
    try:
        crawl.start()
        crawl.wait()
        assert postgres().ask('SELECT count(*) FROM tasks WHERE state = 1', 'threads') == [[f'{hosts * pages}']], crawl.errors()
        claims = int(postgres().ask('SELECT last_value FROM tokens', 'threads')[0][0])
        assert claims == hosts, claims
    finally:
        crawl.close()


if __name__ == '__main__':
    if _IS_LONG:
        cases.tests_of = lambda _: {test.__name__: test for test in [
            killed_stopped_and_started_processes_lose_no_page_and_keep_the_pace]}
    cases.main()
