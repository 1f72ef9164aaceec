# SPDX-License-Identifier: MIT
"""Watches a daemon: watch.py PORT DASHBOARD: 1000 scrapes of /metrics a second, and 200 viewers of the dashboard."""
import asyncio
import sys

SCRAPERS, EACH_S, VIEWERS = 20, 0.02, 200


async def scrape(port):
    reader, writer = await asyncio.open_connection('127.0.0.1', port)
    while True:
        writer.write(b'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n')
        head = await reader.readuntil(b'\r\n\r\n')
        length = head.lower().split(b'content-length:')[1].split(b'\r\n')[0]
        await reader.readexactly(int(length))
        await asyncio.sleep(EACH_S)


async def look(port):
    reader, writer = await asyncio.open_connection('127.0.0.1', port)
    writer.write(b'GET /panel/stream?view=rules HTTP/1.1\r\nHost: localhost\r\n\r\n')
    while await reader.read(65536):
        pass


async def main(port, dashboard):
    await asyncio.gather(*[scrape(port) for _ in range(SCRAPERS)], *[look(dashboard) for _ in range(VIEWERS)])


asyncio.run(main(*map(int, sys.argv[1:])))
