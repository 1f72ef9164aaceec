#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: apis.py PORT LATENCY_MS NAME

Answers like large APIs: status and fields as their public documentation describes them, with limits
that a run of minutes reaches.
"""
import asyncio
import datetime
import json
import math
import sys
import time
from email.utils import format_datetime


class Bucket:
    def __init__(self, rate, burst):
        self.rate, self.burst, self.level, self.at = rate, burst, burst, time.monotonic()

    def take(self):
        now = time.monotonic()
        self.level = min(self.burst, self.level + (now - self.at) * self.rate)
        self.at = now
        if self.level < 1:
            return False
        self.level -= 1
        return True

    @property
    def left(self):
        return int(self.level)

    @property
    def wait_s(self):
        return max(0, (1 - self.level) / self.rate)

    @property
    def full_s(self):
        return (self.burst - self.level) / self.rate


class Window:
    """A window that begins with its first request."""

    def __init__(self, quota, seconds):
        self.quota, self.seconds, self.used, self.end_at = quota, seconds, 0, 0

    def take(self):
        if time.monotonic() >= self.end_at:
            self.used, self.end_at = 0, time.monotonic() + self.seconds
        if self.used >= self.quota:
            return False
        self.used += 1
        return True

    @property
    def left(self):
        return self.quota - self.used

    @property
    def wait_s(self):
        return max(0, self.end_at - time.monotonic())


class Block(Window):
    """A window; exceeding its quota starts a block."""

    def __init__(self, quota, seconds, block_s):
        super().__init__(quota, seconds)
        self.block_s, self.blocked_until, self.began_at, self.taken = block_s, 0, time.time(), 0

    def take(self):
        now = time.monotonic()
        if now < self.blocked_until:
            return False
        if super().take():
            self.taken += 1
            return True
        self.blocked_until, self.end_at = now + self.block_s, now
        return False

    @property
    def wait_s(self):
        return max(0, self.blocked_until - time.monotonic())


def whole(seconds):
    return str(math.ceil(seconds))


def instant(seconds):
    return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)


def duration(seconds):
    """Formats a duration as Go does: 12ms, 1.5s, 6m0s."""
    if seconds < 1:
        return f'{math.ceil(seconds * 1000)}ms'
    minutes, rest = divmod(seconds, 60)
    return f'{int(minutes)}m{rest:.0f}s' if minutes else f'{rest:.3f}'.rstrip('0').rstrip('.') + 's'


def github(limit, refused):
    return (403 if refused else 200), {
        'X-RateLimit-Limit': limit.quota, 'X-RateLimit-Remaining': limit.left, 'X-RateLimit-Used': limit.used,
        'X-RateLimit-Reset': math.ceil(time.time() + limit.wait_s), 'X-RateLimit-Resource': 'core'}


def github_secondary(limit, refused):
    """The fields announce the hourly quota, which is not exhausted; another limit refuses, and no
    field announces it."""
    fields = {'X-RateLimit-Limit': 15000, 'X-RateLimit-Remaining': 15000 - limit.taken, 'X-RateLimit-Used': limit.taken,
              'X-RateLimit-Reset': int(limit.began_at + 1500), 'X-RateLimit-Resource': 'core'}
    return (403, {**fields, 'Retry-After': whole(limit.wait_s)}) if refused else (200, fields)


def shopify(limit, refused):
    fields = {'X-Shopify-Shop-Api-Call-Limit': f'{limit.burst - limit.left}/{limit.burst}'}
    return (429, {**fields, 'Retry-After': '2.0'}) if refused else (200, fields)


def discord(limit, refused):
    fields = {'X-RateLimit-Limit': limit.quota, 'X-RateLimit-Remaining': limit.left,
              'X-RateLimit-Reset': f'{time.time() + limit.wait_s:.3f}', 'X-RateLimit-Reset-After': f'{limit.wait_s:.3f}',
              'X-RateLimit-Bucket': 'abcd1234'}
    return (429, {**fields, 'Retry-After': whole(limit.wait_s), 'X-RateLimit-Scope': 'user'}) if refused else (200, fields)


def reddit(limit, refused):
    return (429 if refused else 200), {'X-Ratelimit-Used': limit.used, 'X-Ratelimit-Remaining': f'{limit.left:.1f}',
                                       'X-Ratelimit-Reset': whole(limit.wait_s)}


def openai(limit, refused):
    fields = {'x-ratelimit-limit-requests': limit.burst, 'x-ratelimit-remaining-requests': limit.left,
              'x-ratelimit-reset-requests': duration(limit.full_s), 'x-ratelimit-limit-tokens': 150000,
              'x-ratelimit-remaining-tokens': 149000, 'x-ratelimit-reset-tokens': '6m0s'}
    return (429, {**fields, 'retry-after-ms': math.ceil(limit.wait_s * 1000), 'retry-after': whole(limit.wait_s)}) if refused else (200, fields)


def anthropic(limit, refused):
    fields = {'anthropic-ratelimit-requests-limit': limit.burst, 'anthropic-ratelimit-requests-remaining': limit.left,
              'anthropic-ratelimit-requests-reset': instant(limit.full_s).strftime('%Y-%m-%dT%H:%M:%SZ')}
    return (429, {**fields, 'retry-after': whole(limit.wait_s)}) if refused else (200, fields)


def overloaded(_limit, refused):
    return (529, {}) if refused else (200, {})


def cloudflare(limit, refused):
    fields = {'Ratelimit': f'"default";r={limit.left};t={whole(limit.wait_s)}',
              'Ratelimit-Policy': f'"default";q={limit.quota};w={limit.seconds}'}
    return (429, {**fields, 'Retry-After': whole(limit.wait_s)}) if refused else (200, fields)


def cloudflare_dates(limit, refused):
    fields = {'X-RateLimit-Limit': limit.quota, 'X-RateLimit-Remaining': limit.left}
    more = {'Retry-After': whole(limit.wait_s), 'X-RateLimit-Reset': format_datetime(instant(limit.wait_s), usegmt=True)}
    return (429, {**fields, **more}) if refused else (200, fields)


def cloudflare_rule(limit, refused):
    return (429, {'Retry-After': whole(limit.wait_s)}) if refused else (200, {})


def gateway(_limit, refused):
    return (429, {'x-amzn-ErrorType': 'TooManyRequestsException'}) if refused else (200, {})


def slow_down(_limit, refused):
    return (503, {}) if refused else (200, {})


def selling_partner(limit, refused):
    return (429 if refused else 200), {'x-amzn-RateLimit-Limit': limit.rate}


class Flight:
    def __init__(self, most):
        self.most, self.now = most, 0

    def take(self):
        if self.now >= self.most:
            return False
        self.now += 1
        return True

    def give(self):
        self.now -= 1


APIS = {
    'github': (Window(300, 60), github),
    'github-secondary': (Block(80, 10, 20), github_secondary),
    'shopify': (Bucket(2, 40), shopify),
    'discord': (Window(10, 2), discord),
    'reddit': (Window(100, 60), reddit),
    'openai': (Bucket(5, 30), openai),
    'anthropic': (Bucket(5, 50), anthropic),
    'anthropic-529': (Flight(5), overloaded),
    'cloudflare-api': (Window(120, 60), cloudflare),
    'cloudflare-dates': (Window(100, 20), cloudflare_dates),
    'cloudflare-rule': (Block(50, 10, 10), cloudflare_rule),
    'aws-gateway': (Bucket(10, 20), gateway),
    'aws-s3': (Bucket(20, 40), slow_down),
    'aws-selling-partner': (Bucket(0.5, 15), selling_partner),
}


class Service:
    def __init__(self, name, latency_s):
        (self.limit, self.answer), self.latency_s = APIS[name], latency_s

    async def serve(self, reader, writer):
        try:
            while True:
                await reader.readuntil(b'\r\n\r\n')
                status, fields = await self.decide()
                body = json.dumps({'status': status}) + '\n'
                lines = [f'HTTP/1.1 {status} As Documented', f'Content-Length: {len(body)}', 'Content-Type: application/json']
                lines += [f'{name}: {value}' for name, value in fields.items()]
                writer.write(('\r\n'.join(lines) + '\r\n\r\n' + body).encode())
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def decide(self):
        refused = not self.limit.take()
        said = self.answer(self.limit, refused)
        if not refused:
            await asyncio.sleep(self.latency_s)
            if hasattr(self.limit, 'give'):
                self.limit.give()
        return said


async def main(port, latency_ms, name):
    service = Service(name, int(latency_ms) / 1e3)
    server = await asyncio.start_server(service.serve, '127.0.0.1', int(port), backlog=512)
    await server.serve_forever()


if __name__ == '__main__':
    asyncio.run(main(*sys.argv[1:]))
