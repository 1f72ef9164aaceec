#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The judge of bench/real counts correctly: the messages through the relay, the waits that a server
announces, and the reaction of a client."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'cli'), os.path.join(HERE, '..', '..', 'bench', 'real')]
import cases  # noqa: E402
from rig import fields, http1, judge, setup  # noqa: E402

PAGE = b'HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-A: 1\r\n\r\npage'
CHUNKS = b'HTTP/1.1 429 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n'
ROOM = setup.Setup('room', setup.Server(()), setup.window(10, 10), (429,), ban_s=30)


def _answered(sent_at, ended_at, status, wait_until=0):
    return judge.Request(sent_at, ended_at, status, '', wait_until)


def judge_parses_responses_from_pieces_of_any_size():
    data = PAGE + b'HTTP/1.1 100 Continue\r\n\r\n' + CHUNKS + b'HTTP/1.1 204 Nothing\r\n\r\n' + PAGE
    for size in range(1, len(data) + 1):
        answers, found = http1.Answers(), []
        for start in range(0, len(data), size):
            found += [status for status, _ in answers.feed(data[start:start + size])]
        assert found == [200, 429, 204, 200], (size, found)


def judge_counts_requests_when_they_are_complete():
    requests = http1.Requests()
    assert [requests.feed(piece) for piece in (b'GET / HTTP/1.1\r\nA: b\r', b'\n\r', b'\n', b'GET /2 HTTP/1.1\r\n\r\nGET')] == [0, 0, 1, 1]


def judge_reads_announced_waits_from_every_style_of_fields():
    now = 1700000000.0
    both = ('retry-after', 'ratelimit')
    for is_refused, said, wait in (
            (True, {'retry-after': ['7']}, 7), (True, {'retry-after': ['2.0']}, 2),
            (True, {'retry-after': ['2023-11-14T22:13:25Z']}, 5),
            (False, {'x-ratelimit-remaining': ['0'], 'x-ratelimit-reset': ['Tue Nov 14 2023 22:13:27 GMT+0000 (UTC)']}, 7),
            (True, {'retry-after': ['Tue, 14 Nov 2023 22:13:40 GMT']}, 20), (False, {'retry-after': ['7']}, 0),
            (False, {'x-ratelimit-remaining': ['0'], 'x-ratelimit-reset': ['1700000009']}, 9),
            (False, {'x-ratelimit-remaining': ['0'], 'x-ratelimit-reset': ['30'], 'x-ratelimit-reset-after': ['1.5']}, 1.5),
            (False, {'x-ratelimit-remaining': ['1'], 'x-ratelimit-reset': ['9']}, 0),
            (False, {'ratelimit': ['limit=50, remaining=0, reset=6']}, 6),
            (False, {'ratelimit': ['"a";r=3;t=60, "b";r=0;t=8']}, 8), (False, {'ratelimit': ['"a";r=3;t=60']}, 0)):
        assert abs(fields.named_wait(said, is_refused, both, now) - wait) < 0.001, said
    assert fields.named_wait({'ratelimit-remaining': ['0'], 'ratelimit-reset': ['9']}, False, ('retry-after',), now) == 0


def request_sent_inside_an_announced_wait_is_an_offence():
    first = _answered(0, 1, 429, 11)
    assert judge.offences([first, _answered(1.001, 2, 429)]) == []  # sent before the response arrived
    assert judge.offences([first, _answered(5, 6, 200), _answered(10.9, 11, 200)]) == [(5, 11), (10.9, 11)]
    assert judge.offences([first, _answered(11, 12, 200)]) == []
    assert judge.offences([first, _answered(1, 1.5, 429, 3), _answered(8, 9, 200)]) == [(8, 11)]


def refusal_after_an_accepted_request_begins_a_ban():
    assert judge.bans([_answered(1, 2, 200), _answered(2, 3, 429), _answered(3, 4, 429)], ROOM) == 1
    late = _answered(1.5, 9, 200)  # sent before the ban, answered during it
    assert judge.bans([_answered(1, 2, 200), late, _answered(2, 3, 429), _answered(9.5, 10, 429)], ROOM) == 1
    assert judge.bans([_answered(2, 3, 429), _answered(40, 41, 200), _answered(41, 42, 429)], ROOM) == 2


def second_half_allows_no_burst_and_skips_unfinished_requests():
    bucket = setup.Setup('bucket', setup.Server(()), setup.rate(1, 5))
    requests = [_answered(at, at + 0.5, 429 if at == 15 else 200) for at in range(20)] + [judge.Request(19.9)]
    requests.append(judge.Request(12, 12.5, 0, 'reset'))
    result = judge.judge(requests, bucket, 0, 20)
    assert result['whole'] == {'sent': 21, 'accepted': 19, 'refused': 1, 'lost': 1, 'other': 0, 'allowed': 25, 'goodput': 76.0,
                               'refused_part': 100 * 2 / 21}
    assert (result['half']['accepted'], result['half']['allowed']) == (9, 10)
    assert result['series'] == [[10, 0, 0], [9, 1, 1]]


if __name__ == '__main__':
    cases.main()
