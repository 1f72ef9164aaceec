# SPDX-License-Identifier: MIT
"""Counts what a client did, from the messages that passed the relay. No input or output; times are
numbers."""
import dataclasses

STEP_S = 10       # length of a step in a series
EXAMPLES = 5      # offences that are listed
GRACE_S = 0.02    # a request that is sent before a response arrives does not count as an offence
SLACK_S = 0.005   # tolerance, because a clock may be a little ahead


@dataclasses.dataclass
class Request:
    sent_at: float
    ended_at: float = 0    # when it was answered or lost; 0: not yet
    status: int = 0        # 0: no response
    lost: str = ''         # 'reset': the server closed the connection; 'silence': the client gave up; '': not lost
    wait_until: float = 0  # the response forbids requests until then; 0: it does not


def is_accepted(request, setup):
    return 200 <= request.status < 400 and request.status not in setup.refused


def is_refused(request, setup):
    return request.status in setup.refused


def offences(requests):
    """Returns [(when it was sent, when the window ends)] of requests sent inside a window that the
    server had announced before."""
    windows = sorted((each.ended_at + GRACE_S, each.wait_until) for each in requests if each.wait_until > each.ended_at)
    found, known, until = [], 0, 0
    for request in sorted(requests, key=lambda each: each.sent_at):
        while known < len(windows) and windows[known][0] < request.sent_at:
            until = max(until, windows[known][1])
            known += 1
        if request.sent_at < until - SLACK_S:
            found.append((request.sent_at, until))
    return found


def bans(requests, setup):
    """Returns how often the host began to refuse for `ban_s`: a refusal of a request that was sent
    after an accepted one. Requests count in the order of sending, because requests in flight
    when a ban begins may be answered after its start."""
    count, is_banned = 0, False
    for request in sorted(requests, key=lambda each: each.sent_at):
        if is_accepted(request, setup):
            is_banned = False
        elif is_refused(request, setup) or request.lost:
            count += not is_banned
            is_banned = True
    return count if setup.ban_s else 0


def series(requests, setup, began_at, duration_s):
    """Returns [accepted, refused, lost] for each step of STEP_S seconds."""
    steps = [[0, 0, 0] for _ in range(max(1, round(duration_s / STEP_S)))]
    for request in requests:
        index = int((request.ended_at - began_at) / STEP_S)
        if not 0 <= index < len(steps):
            continue
        if is_accepted(request, setup):
            steps[index][0] += 1
        elif is_refused(request, setup):
            steps[index][1] += 1
        elif request.lost:
            steps[index][2] += 1
    return steps


def tally(requests, setup, allowed):
    accepted = sum(is_accepted(each, setup) for each in requests)
    refused = sum(is_refused(each, setup) for each in requests)
    lost = sum(bool(each.lost) for each in requests)
    return {'sent': len(requests), 'accepted': accepted, 'refused': refused, 'lost': lost, 'other': len(requests) - accepted - refused - lost,
            'allowed': allowed, 'goodput': 100 * accepted / allowed,
            'refused_part': 100 * (refused + lost) / max(1, len(requests))}


def judge(requests, setup, began_at, duration_s):
    """Returns counts of the whole run, and of its second half. Unfinished requests are not counted.
    """
    ended = [each for each in requests if each.ended_at and each.ended_at < began_at + duration_s]
    found = offences([each for each in requests if each.sent_at < began_at + duration_s])
    half_at = began_at + duration_s / 2
    late = [each for each in ended if each.ended_at >= half_at]
    return {'whole': tally(ended, setup, setup.limit.allowed(duration_s, True)),
            'half': tally(late, setup, setup.limit.allowed(duration_s / 2, False)),
            'offences': len(found), 'examples': [(sent - began_at, until - began_at) for sent, until in found[:EXAMPLES]], 'bans': bans(ended, setup), 'step_s': STEP_S,
            'series': series(ended, setup, began_at, duration_s)}
