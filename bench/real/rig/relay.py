# SPDX-License-Identifier: MIT
"""The judging relay: stands between a client and a server, one connection for one, and notes what passes.

A request counts from when the kernel received its last byte, an answer from when its first bytes have gone to the client. What
the server does to a connection (a reset, an end, silence) is done to the client's.
"""
import asyncio
import contextlib
import os
import socket
import struct
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..', 'tests', 'lib'))

import stamp  # noqa: E402

from . import fields, http1, judge  # noqa: E402

RESET = struct.pack('ii', 1, 0)  # linger for no time: close() sends a reset


class Relay:
    """Listens as long as it lives, so that a host keeps its port while servers come and go: `lead_to` names the next."""

    def __init__(self):
        self._listener = stamp.listen('127.0.0.1')
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        self._target, self._setup, self._tasks = None, None, set()
        self.requests = []
        self.has_begun = asyncio.Event()

    def lead_to(self, port, setup):
        self._target, self._setup, self.requests = port, setup, []
        self.has_begun.clear()

    async def serve(self):
        loop = asyncio.get_running_loop()
        while True:
            client, _ = await loop.sock_accept(self._listener)
            task = loop.create_task(Pair(self, client).carry())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def hang_up(self):
        for task in self._tasks:
            task.cancel()

    async def connect(self):
        server = socket.socket()
        server.setblocking(False)
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await asyncio.get_running_loop().sock_connect(server, ('127.0.0.1', self._target))
        except OSError:
            server.close()
            raise
        return server

    def sent(self, at):
        request = judge.Request(at)
        self.requests.append(request)
        self.has_begun.set()
        return request

    def answered(self, request, status, lines, came_at):
        """`came_at`: before it went on to the client, which may have it sooner than this relay is awake again."""
        request.ended_at, request.status = time.time(), status
        wait = fields.named_wait(lines, status in self._setup.refused, self._setup.windows, came_at)
        request.wait_until = came_at + wait if wait > 0 else 0


class Pair:
    """A connection of a client, and the one to the server that it leads to."""

    def __init__(self, relay, client):
        self._relay, self._client, self._server = relay, client, None
        self._asked, self._answers, self._pending = http1.Requests(), http1.Answers(), []
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    async def carry(self):
        ways = []
        try:
            self._server = await self._relay.connect()
            loop = asyncio.get_running_loop()
            ways = [loop.create_task(self._up()), loop.create_task(self._down())]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            self._end(*ways)
        except OSError:
            self._lose('reset')
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)  # they are done with the sockets
            for each in (self._client, self._server):
                if each is not None:
                    each.close()

    def _end(self, up, down):
        """One of the two has closed: the other's connection ends likewise."""
        if down.done():
            self._ask_rest()
            self._lose('reset')
            if down.exception() is not None:
                self._client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        else:
            self._lose('silence')
            up.exception()

    def _lose(self, how):
        now = time.time()
        for request in self._pending:
            request.ended_at, request.lost = now, how

    def _ask_rest(self):
        """A server that refuses connections does not wait for the request, which may have come meanwhile."""
        with contextlib.suppress(OSError):
            self._note(*stamp.receive(self._client))

    def _note(self, data, at):
        self._pending += [self._relay.sent(at) for _ in range(self._asked.feed(data))]

    async def _up(self):
        loop = asyncio.get_running_loop()
        while True:
            await readable(loop, self._client)
            data, at = stamp.receive(self._client)
            if not data:
                return
            self._note(data, at)
            with contextlib.suppress(OSError):  # _down notices
                await loop.sock_sendall(self._server, data)

    async def _down(self):
        loop = asyncio.get_running_loop()
        while data := await loop.sock_recv(self._server, 65536):
            came_at = time.time()
            with contextlib.suppress(OSError):  # _up notices
                await loop.sock_sendall(self._client, data)
            for status, lines in self._answers.feed(data):
                if self._pending:
                    self._relay.answered(self._pending.pop(0), status, lines, came_at)


async def readable(loop, connection):
    future = loop.create_future()
    loop.add_reader(connection, lambda: future.done() or future.set_result(None))
    try:
        await future
    finally:
        loop.remove_reader(connection)


class SlowAnswers(asyncio.Protocol):
    """What is behind the limiters: answers each request after the same time."""

    BODY = b'<p>served</p>\n'
    ANSWER = b'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s' % (len(BODY), BODY)

    def __init__(self, latency_s):
        self._latency_s, self._asked = latency_s, http1.Requests()

    def connection_made(self, transport):
        self._transport = transport

    def data_received(self, data):
        for _ in range(self._asked.feed(data)):
            asyncio.get_running_loop().call_later(self._latency_s, self._transport.write, self.ANSWER)


async def serve_slowly(latency_s):
    """(port, server)"""
    server = await asyncio.get_running_loop().create_server(lambda: SlowAnswers(latency_s), '127.0.0.1', 0, backlog=512)
    return server.sockets[0].getsockname()[1], server
