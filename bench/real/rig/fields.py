# SPDX-License-Identifier: MIT
"""Computes the time until which a server forbids requests, from its response fields; implemented
independently of weir, for the judge."""
import datetime
import email.utils
import re

EPOCH_S = 1e9  # a number of seconds from here on is a point in time, not a delay
PREFIXES = ('ratelimit-', 'x-ratelimit-', 'x-rate-limit-', 'x-ratelimit-user')


def first(fields, name):
    return fields[name][0] if name in fields else None


def number(text):
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def javascript_date(text):
    """Parses a date such as Thu Nov 19 2026 15:00:00 GMT+0000 (Coordinated Universal Time)"""
    return datetime.datetime.strptime(text.split(' (')[0], '%a %b %d %Y %H:%M:%S GMT%z')


def iso_date(text):
    return datetime.datetime.fromisoformat(text.replace('Z', '+00:00'))


def seconds(text, now):
    """Reads a delay, an instant since 1970, or a date; returns None for anything else."""
    if text is None:
        return None
    value = number(text)
    if value is not None:
        if value > EPOCH_S * 1000:
            value /= 1000
        return value - now if value > EPOCH_S else value
    for parse in (email.utils.parsedate_to_datetime, iso_date, javascript_date):
        try:
            return parse(text).timestamp() - now
        except (TypeError, ValueError):
            continue
    return None


def exhausted_items(text):
    """Yields the seconds until the reset for `limit=50, remaining=0, reset=7` and for each
    `"name";r=0;t=7` with nothing left."""
    for item in [text] if 'remaining' in text else text.split(','):
        pairs = dict(re.findall(r'(\w+)\s*=\s*([\d.]+)', item))
        if number(pairs.get('remaining', pairs.get('r'))) == 0:
            yield float(pairs.get('reset', pairs.get('t', 0)))


def exhausted(fields, now):
    """Yields the seconds until the reset, for each exhausted limit."""
    for text in fields.get('ratelimit', []):
        yield from exhausted_items(text)
    for prefix in PREFIXES:
        if number(first(fields, prefix + 'remaining')) != 0:
            continue
        for name in ('reset-after', 'reset'):
            wait = seconds(first(fields, prefix + name), now)
            if wait is not None:
                yield wait
                break


def named_wait(fields, is_refused, windows, now):
    """Returns the seconds to wait; 0 if the server announced none. `windows` says which fields
    announce one (rig/setup.py)."""
    waits = [0]
    if is_refused and 'retry-after' in windows and 'retry-after' in fields:
        waits.append(seconds(first(fields, 'retry-after'), now) or 0)
    if 'ratelimit' in windows:
        waits += exhausted(fields, now)
    return max(waits)
