# SPDX-License-Identifier: MIT
"""What a client did, counted from what passed the relay. Pure: times are numbers."""
import dataclasses

STEP_S = 10       # of a series
EXAMPLES = 5      # of offences
GRACE_S = 0.02    # an answer is on its way; what is sent until then does not know it
SLACK_S = 0.005   # a clock may be a little ahead


@dataclasses.dataclass
class Request:
    sent_at: float
    ended_at: float = 0    # answered or lost; 0: neither yet
    status: int = 0        # 0: no answer
    lost: str = ''         # 'reset': the server closed; 'silence': the client gave up
    wait_until: float = 0  # the answer named a time until which nothing may be sent


def is_accepted(request, setup):
    return 200 <= request.status < 400 and request.status not in setup.refused


def is_refused(request, setup):
    return request.status in setup.refused


def offences(requests):
    """[(when it was sent, when the window ends)] of requests inside a window that the server had named before."""
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
    """How often the host began to refuse for `ban_s`: a refusal of a request that was sent after one that it accepted. In the
    order of sending, since what was under way as a ban began may be answered after it did."""
    count, is_banned = 0, False
    for request in sorted(requests, key=lambda each: each.sent_at):
        if is_accepted(request, setup):
            is_banned = False
        elif is_refused(request, setup) or request.lost:
            count += not is_banned
            is_banned = True
    return count if setup.ban_s else 0


def series(requests, setup, began_at, duration_s):
    """[accepted, refused, lost] in each STEP_S."""
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
    """Counts of the whole run, and of its last half. What has not ended is not counted."""
    ended = [each for each in requests if each.ended_at and each.ended_at < began_at + duration_s]
    found = offences([each for each in requests if each.sent_at < began_at + duration_s])
    half_at = began_at + duration_s / 2
    late = [each for each in ended if each.ended_at >= half_at]
    return {'whole': tally(ended, setup, setup.limit.allowed(duration_s, True)),
            'half': tally(late, setup, setup.limit.allowed(duration_s / 2, False)),
            'offences': len(found), 'examples': [(sent - began_at, until - began_at) for sent, until in found[:EXAMPLES]], 'bans': bans(ended, setup), 'step_s': STEP_S,
            'series': series(ended, setup, began_at, duration_s)}
