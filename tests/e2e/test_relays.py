#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir fetch processes that share an origin's gate, with bad links to one Redis, or with a Redis
that is replaced by its replica: judged by the origin's log.

usage: test_relays.py WEIR
"""
import collections
import contextlib
import os
import re
import resource
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', each) for each in ('cli', 'lib', 'share')]
import cases  # noqa: E402
from cluster import wait_for, weir  # noqa: E402
from crew import Crew  # noqa: E402
from origin import Origin  # noqa: E402
from road import Road, chance, disturb  # noqa: E402
from store import Redis  # noqa: E402

INTERVAL_S = 0.1
TURN_S = 2  # longest time that a process keeps the gate without a reply from the store
HOSTS = 200
STRICT = ['--pace', 'strict', '--interval', f'{INTERVAL_S}s']


class Closing:
    """An origin that answers 429 for `seconds`. `told`: when each process got its first 429."""

    def __init__(self, seconds):
        self.seconds, self.since, self.told = seconds, None, {}

    def close_now(self):
        self.since = 0

    def __call__(self, at, path):
        if self.since == 0:
            self.since = at
        left = self.since + self.seconds - at if self.since else 0
        if left <= 0:
            return 200, ''
        self.told.setdefault(path.split('/')[1], at)
        return 429, f'Retry-After: {int(left) + 1}\r\n'

    def judge(self, origin):
        """Checks that no process that got a 429 sends another request within that time."""
        soon = [(round(at - self.since, 2), path) for at, path, _, _ in origin.log
                if self.since < at < self.since + self.seconds - 0.1 and at > self.told.get(path.split('/')[1], at) + 0.5]
        assert not soon, soon


def _always(_at, _path):
    return 200, ''


def _pages(origin):
    return {path for _, path, status, _ in origin.log if status == 200}


@contextlib.contextmanager
def _crew(answer, count, urls, *options):
    """Starts the fixture and yields (redis, origin, roads, crew), with one link to the Redis per
    process."""
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(Redis())
        origin = stack.enter_context(Origin(answer))
        roads = [stack.enter_context(Road(redis.path)) for _ in range(count)]
        stores = [f'redis://127.0.0.1:{road.port}' for road in roads]
        yield redis, origin, roads, stack.enter_context(Crew(weir(), origin, stores, count, urls, *STRICT, *options))


def _ended_well(crew, origin, pages):
    assert crew.wait() == [0] * len(crew.processes)
    assert len(_pages(origin)) == pages, len(_pages(origin))
    origin.judge_gaps(INTERVAL_S)


def bad_links_to_redis_keep_the_pace_and_all_processes_finish():
    closing = Closing(3)
    with _crew(closing, 4, 10) as (_, origin, roads, crew):
        wait_for(lambda: len({who for _, _, _, who in list(origin.log)}) == 4, 'each to have had a turn')
        luck = chance()
        disturb(roads, 1.5, luck)
        closing.close_now()
        disturb(roads, 3, luck)
        _ended_well(crew, origin, 40)
        closing.judge(origin)
        print(f'told {len(closing.told)} of 4, {sum(status == 429 for _, _, status, _ in origin.log)} rejected')


def processes_cut_off_from_redis_end_their_leases_and_others_continue():
    with _crew(_always, 4, 12) as (_, origin, roads, crew):
        wait_for(lambda: len({who for _, _, _, who in list(origin.log)}) == 4, 'each to have had a turn')
        last = int(max(origin.log)[3][1:])  # most likely this process holds the gate
        ways = {(last + i) % 4: way for i, way in enumerate((('up', 'down'), ('up',), ('down',)))}
        for i, way in ways.items():
            roads[i].cut(*way)
        cut_at = time.time()

        def late():
            return [(round(at - cut_at, 2), int(who[1:])) for at, _, _, who in list(origin.log) if at > cut_at + TURN_S + 0.5]
        # a process whose requests arrive but that gets no replies is granted the gate as well
        wait_for(late, 'the other to go on')
        assert not {who for _, who in late()} & set(ways), late()
        for road in roads:
            road.mend()
        _ended_well(crew, origin, 48)


@contextlib.contextmanager
def _followed(redis):
    """Yields (the link over which a replica follows, the replica)."""
    with Road(redis.path) as behind, Redis(behind) as replica:
        wait_for(replica.has_followed, 'the replica')
        yield behind, replica


def _fail_over(redis, replica, roads):
    redis.kill()
    replica.promote()
    for road in roads:
        road.lead_to(replica.path)


def promoted_redis_replica_keeps_the_pace_and_retry_after():
    closing = Closing(4)
    with _crew(closing, 4, 8) as (redis, origin, roads, crew), _followed(redis) as (behind, replica):
        wait_for(lambda: len({who for _, _, _, who in list(origin.log)}) == 4, 'each to have had a turn')
        behind.cut()
        time.sleep(0.5)
        closing.close_now()
        wait_for(lambda: closing.told, 'one to be told')
        time.sleep(0.3)  # the process writes it to the store at once
        _fail_over(redis, replica, roads)
        _ended_well(crew, origin, 32)
        soon = [round(at - closing.since, 2) for at, _, _, _ in origin.log if closing.since + 0.5 < at < closing.since + closing.seconds - 0.1]
        assert not soon, soon


def promoted_redis_replica_grants_no_lease_that_is_still_held():
    """The process that holds the gate is cut off. The replica has not received the renewal of its
    lease, and a new process starts."""
    with _crew(_always, 2, 40) as (redis, origin, roads, crew), _followed(redis) as (behind, replica):
        crew.processes[1].kill()
        crew.processes[1].wait()
        wait_for(lambda: len(origin.log) > 3, 'some pages')
        behind.cut()
        time.sleep(TURN_S + 0.5)
        roads[0].cut()
        _fail_over(redis, replica, roads[1:])
        crew.add()
        crew.add()
        time.sleep(TURN_S + 0.5)
        roads[0].lead_to(replica.path)
        roads[0].mend()
        wait_for(lambda: len({who for _, _, _, who in list(origin.log)}) > 2, 'others to have had a turn')
        origin.judge_gaps(INTERVAL_S)


class Hosts(Origin):
    """An origin for which each URL of a process has another host; all hosts are addresses of this
    machine."""

    def url(self, path):
        number = int(path.split('/')[1])
        return f'http://127.1.{number // 256}.{number % 256}:{self.port}/{path}'

    def gaps(self):
        at = collections.defaultdict(list)
        for when, path, _, _ in self.log:
            at[path.split('/')[2]].append(when)
        return [later - sooner for times in at.values() for sooner, later in zip(sorted(times), sorted(times)[1:])]


def shared_hosts_take_little_memory_in_redis():
    """Checks the bytes per host in the store. Requests to a host are an interval apart, whichever
    process sends them."""
    with Redis() as redis, Hosts(_always, address='') as origin:
        with Crew(weir(), origin, [redis.url], 2, HOSTS, *STRICT) as crew:
            assert crew.wait() == [0, 0]
            assert len(_pages(origin)) == 2 * HOSTS
            bytes_each = max(int(redis.say('MEMORY', 'USAGE', f'weir:{{pace 127.1.0.{number}:{origin.port}}}')[1:]) for number in range(50))
            most_kb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            calls = sum(map(int, re.findall(r'cmdstat_eval[^:]*:calls=(\d+)', redis.say('INFO', 'commandstats'))))
            print(f'{bytes_each} bytes of a host in the store, {calls / HOSTS:.0f} calls; the largest process had {most_kb} KB')
            origin.judge_gaps(INTERVAL_S)
            assert bytes_each < 2048, bytes_each


if __name__ == '__main__':
    cases.main()
