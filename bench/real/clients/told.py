#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: told.py PORT SPACING_S BURST FLIGHT BAN_S

A client that knows the limit: a request each SPACING_S (0: after each response), BURST more at
first, at most FLIGHT at once. It is silent for BAN_S after a refusal. Its results show that the
limit is the one that its setup states.
"""
import asyncio
import sys

BURST_SPACING_S = 0.06
BURST_PART = 0.9
LATE_S = 0.02   # a schedule that is later than this starts anew
TIMEOUT_S = 10
BAN_SLACK_S = 1.5


class Schedule:
    def __init__(self, spacing_s, burst):
        self.spacing_s, self.burst, self.next_at = spacing_s, int(burst * BURST_PART), 0

    def pause(self, seconds):
        self.next_at = max(self.next_at, asyncio.get_running_loop().time() + seconds)

    async def turn(self):
        now = asyncio.get_running_loop().time()
        if self.next_at < now - LATE_S:
            self.next_at = now
        at = self.next_at
        self.next_at += min(BURST_SPACING_S, self.spacing_s) if self.burst > 0 else self.spacing_s
        self.burst -= 1
        await asyncio.sleep(max(0, at - now))


async def fetch(reader, writer):
    writer.write(b'GET /page/1 HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: told\r\n\r\n')
    head = (await reader.readuntil(b'\r\n\r\n')).lower()
    status = int(head.split(b' ')[1])
    if b'transfer-encoding: chunked' in head:
        while (size := int((await reader.readline()).split(b';')[0], 16)) > 0:
            await reader.readexactly(size + 2)
        await reader.readline()
    elif b'content-length:' in head:
        await reader.readexactly(int(head.split(b'content-length:')[1].split(b'\r\n')[0]))
    else:
        await reader.read()
    return b'connection: close' not in head, status < 400


async def work(port, schedule, ban_s):
    """Uses one connection at a time, as long as the server keeps it open."""
    writer = None
    while True:
        await schedule.turn()
        try:
            if writer is None:
                reader, writer = await asyncio.open_connection('127.0.0.1', port)
            is_kept, is_served = await asyncio.wait_for(fetch(reader, writer), TIMEOUT_S)
        except (OSError, EOFError, asyncio.TimeoutError, ValueError, IndexError):
            is_kept, is_served = False, False
        if not is_served and ban_s:
            schedule.pause(ban_s + BAN_SLACK_S)
        if not is_kept and writer is not None:
            writer.close()
            writer = None


async def main(port, spacing_s, burst, flight, ban_s):
    schedule = Schedule(float(spacing_s), float(burst))
    await asyncio.gather(*(work(int(port), schedule, float(ban_s)) for _ in range(int(flight))))


if __name__ == '__main__':
    asyncio.run(main(*sys.argv[1:]))
