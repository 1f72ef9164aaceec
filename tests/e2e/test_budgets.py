#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Three weir serve processes with bad links to one Redis, or with a Redis that is replaced by its
replica: judged by the responses that callers got, and their times.

usage: test_budgets.py WEIR

A decision is made between a request and its response. So everything that was both requested and
answered within an interval was admitted within it; the test compares that count with the limit.
"""
import collections
import contextlib
import json
import os
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', each) for each in ('cli', 'lib', 'serve', 'share')]
import cases  # noqa: E402
from cluster import wait_for  # noqa: E402
from daemon import Daemon  # noqa: E402
from road import Road, chance, disturb  # noqa: E402
from store import Redis, figure  # noqa: E402

NODES = 3
RULES = '''
rules:
  - {{name: exact, limit: 40/s burst=20, share: {{overshoot: 0%, on_outage: closed}}}}
  - {{name: shares, limit: 60/s burst=30, share: {{overshoot: 0%}}}}
  - {{name: leased, limit: 400/s burst=200, share: {{overshoot: 15%, on_outage: closed}}}}
  - {{name: books, limit: 100000/h fixed_window, share: {{overshoot: 0%, on_outage: open}}}}
  - {{name: scarce, limit: 300/h fixed_window, share: {{overshoot: 0%, on_outage: closed}}}}
admission:
  store: {{url: "redis://127.0.0.1:{port}", nodes: 3, timeout: 100ms}}
'''
LIMITS = {'exact': (40, 20), 'shares': (60, 30), 'leased': (400, 200)}  # per second, and burst
BOUND = {'exact': 0, 'leased': NODES * (200 * 15 // 100 // NODES)}
CLOCKS = 1.001  # the clocks of two machines may differ by 0.1 %

Answer = collections.namedtuple('Answer', 'begin end admitted')


def _most_beyond(answers, rate, burst):
    """Returns the largest number of requests admitted beyond the limit in any interval."""
    most = 0
    by_end = sorted((each for each in answers if each.admitted), key=lambda each: each.end)
    for begin in {each.begin for each in by_end}:
        count = 0
        for each in by_end:
            if each.begin >= begin:
                count += each.admitted
                most = max(most, count - burst - rate * (each.end - begin) * CLOCKS)
    return most


class Callers:
    """One caller for each daemon. It asks for as many permits of these rules as it can get, `each`
    at a time."""

    def __init__(self, daemons, rules, each=8):
        self.told = {rule: [] for rule in rules}
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._call, args=(daemon, each)) for daemon in daemons]
        for thread in self._threads:
            thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _call(self, daemon, each):
        connection = daemon.tcp()
        while not self._is_over.is_set():
            for rule, answers in self.told.items():
                begin = time.monotonic()
                status, told = daemon.call('batch', [{'rule': rule, 'key': 'k'}] * each, connection)
                assert status == 200, status
                answers.append(Answer(begin, time.monotonic(), sum(one['allowed'] for one in told)))
            time.sleep(0.005)
        connection.close()

    def admitted(self, rule, since=0):
        return sum(each.admitted for each in list(self.told[rule]) if each.begin >= since)


@contextlib.contextmanager
def _three():
    """Starts a Redis, three links to it, and a daemon behind each link."""
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(Redis())
        roads = [stack.enter_context(Road(redis.path)) for _ in range(NODES)]
        daemons = [stack.enter_context(Daemon(RULES.format(port=road.port))) for road in roads]
        _wait_until_all(daemons, 'weir_share_seated', 1)
        yield redis, roads, daemons


def _figure(daemon, name):
    return figure(daemon.ask('GET', '/metrics')[2], name)


def _wait_until_all(daemons, name, value):
    wait_for(lambda: all(_figure(daemon, name) == value for daemon in daemons), f'{name} {value}')


def _are_well(daemons):
    """Waits until all daemons reach the store again and have charged everything that they admitted
    without it."""
    _wait_until_all(daemons, 'weir_share_up', 1)
    time.sleep(1.1)  # /metrics is not rewritten for every request
    _wait_until_all(daemons, 'weir_share_owed', 0)


def _charged(redis, rule):
    """Returns how much the store has counted for a fixed window with one key. (A daemon might
    answer from its own state.)"""
    keys = [line for line in redis.say('KEYS', f'*{rule}*').split('\r\n') if rule in line]
    state, = (key for key in keys if not key.endswith((':paid', ':was')))
    kinds, _began, _revision, _reset, _begin, count, _ = redis.say('GET', state).split('\r\n')[1].split()
    assert kinds == 'f'
    return int(count)


def bad_links_to_redis_admit_no_request_beyond_the_limit():
    with _three() as (redis, roads, daemons):
        with Callers(daemons, ['exact', 'shares', 'leased', 'books']) as callers:
            wait_for(lambda: all(map(callers.admitted, callers.told)), 'some to be admitted')
            count = disturb(roads, 5, chance())
            _wait_until_all(daemons, 'weir_share_up', 1)
            mended_at = time.monotonic()
            wait_for(lambda: all(callers.admitted(rule, mended_at) for rule in callers.told), 'all to go on')
        beyond = {rule: round(_most_beyond(callers.told[rule], *limit), 2) for rule, limit in LIMITS.items()}
        print(f'{count} times disturbed; admitted', {rule: callers.admitted(rule) for rule in callers.told}, 'beyond', beyond)
        assert beyond['exact'] <= 0 and beyond['leased'] <= BOUND['leased'], beyond
        assert _figure(daemons[0], 'weir_share_overshoot_bound{rule="leased"}') == BOUND['leased']
        # Each daemon that is cut off may additionally admit its own share of the limit.
        assert _most_beyond(callers.told['shares'], *(2 * part for part in LIMITS['shares'])) <= 0, beyond
        _are_well(daemons)
        admitted, charged = callers.admitted('books'), _charged(redis, 'books')
        print(f'admitted {admitted}, charged {charged}')
        assert charged >= admitted


def _waits(daemon):
    """Returns for each rule the number of decisions that the store answered, and the longest wait
    of any caller, in seconds."""
    page = daemon.ask('GET', '/metrics')[2]
    return [(rule, figure(page, f'weir_share_decisions_total{{rule="{rule}",source="store"'),
             figure(page, f'weir_share_longest_wait_seconds{{rule="{rule}"')) for rule in ('books', 'exact', 'leased')]


def cut_links_to_redis_delay_no_caller_and_fallbacks_apply():
    with _three() as (redis, roads, daemons), Callers(daemons, ['books', 'exact', 'leased'], 1) as callers:
        wait_for(lambda: all(map(callers.admitted, callers.told)), 'some to be admitted')
        for road, ways in zip(roads, (('up', 'down'), ('up',), ('down',))):
            road.cut(*ways)
        for daemon in daemons:
            daemon.wait_for('the store of shared limits cannot be reached')
        _wait_until_all(daemons, 'weir_share_up', 0)
        time.sleep(1.2)  # memberships expire, and /metrics is not rewritten for every request
        since, before = time.monotonic(), [_waits(daemon) for daemon in daemons]
        time.sleep(1.2)
        assert [_waits(daemon) for daemon in daemons] == before, before
        assert [callers.admitted(rule, since) > 0 for rule in callers.told] == [True, False, False]
        for road in roads:
            road.mend()
        _wait_until_all(daemons, 'weir_share_up', 1)
        since = time.monotonic()
        wait_for(lambda: all(callers.admitted(rule, since) for rule in callers.told), 'all to go on')
        callers.end()
        for rule in ('exact', 'leased'):
            assert _most_beyond(callers.told[rule], *LIMITS[rule]) <= BOUND[rule], rule
        _are_well(daemons)
        assert _charged(redis, 'books') >= callers.admitted('books')


def charges_whose_replies_are_lost_are_applied_once():
    with _three() as (redis, roads, daemons):
        road, daemon = roads[0], daemons[0]
        admitted = _take(daemon, 'books', 20)  # the first calls also load the script into Redis
        road.cut()
        while admitted < 200 or _figure(daemon, 'weir_share_up') == 1:
            admitted += _take(daemon, 'books', 20)
        road.mend()
        road.bytes_down = 60  # the store accepts connections and applies charges, but its replies do not arrive
        road.reset()
        time.sleep(1.1)  # /metrics is not rewritten for every request
        before = _figure(daemon, 'weir_share_asks_total{result="timed_out"')
        wait_for(lambda: _figure(daemon, 'weir_share_asks_total{result="timed_out"') >= before + 6, 'answers to be lost')
        assert _figure(daemon, 'weir_share_owed') > 0
        road.mend()
        road.reset()
        _are_well(daemons)
        charged = _charged(redis, 'books')
        print(f'admitted {admitted}, charged {charged}')
        assert admitted <= charged < admitted + 30  # requests that were in flight when the link was cut


def _take(daemon, rule, count):
    """Returns how many of `count` requests the daemon admits."""
    return sum(each['allowed'] for each in daemon.call('batch', [{'rule': rule, 'key': 'k'}] * count)[1])


def _take_all(daemon, rule, count):
    """Takes `count` permits; waits for each, because a response may be late."""
    for _ in range(count):
        wait_for(lambda: _take(daemon, rule, 1), 'a permit')


def promoted_redis_replica_admits_at_most_what_it_did_not_receive():
    with _three() as (primary, roads, daemons), Road(primary.path) as behind, Redis(behind) as replica:
        wait_for(replica.has_followed, 'the replica')
        for daemon in daemons:
            _take_all(daemon, 'scarce', 50)
        with Callers(daemons, ['exact', 'leased', 'books']) as callers:
            wait_for(lambda: all(map(callers.admitted, callers.told)), 'some to be admitted')
            behind.cut()
            cut_at = time.monotonic()
            time.sleep(1)
            _take_all(daemons[0], 'scarce', 50)
            unheard = callers.admitted('books', cut_at)
            primary.kill()
            for road in roads:
                road.cut()  # an address that does not respond
            lag_s = time.monotonic() - cut_at
            replica.promote()
            for road in roads:
                road.lead_to(replica.path)
                road.mend()
            _wait_until_all(daemons, 'weir_share_up', 1)
            since = time.monotonic()
            wait_for(lambda: all(callers.admitted(rule, since) for rule in callers.told), 'all to go on')
            time.sleep(1)
        beyond = {rule: round(_most_beyond(callers.told[rule], *LIMITS[rule]), 2) for rule in ('exact', 'leased')}
        _are_well(daemons)
        more = sum(_take(daemon, 'scarce', 100) for daemon in daemons)
        charged = _charged(replica, 'books')
        print(f'beyond {beyond}, {more} of 100 that were left; admitted {callers.admitted("books")}, charged {charged}')
        assert beyond['exact'] <= 40 * lag_s and beyond['leased'] <= 400 * lag_s + BOUND['leased'], (beyond, lag_s)
        assert more <= 150 and charged + unheard >= callers.admitted('books')


if __name__ == '__main__':
    cases.main()
