# SPDX-License-Identifier: MIT
"""The judging relay: forwards each client connection to one server connection, and records the
messages.

The time of a request is when the kernel received its last byte; the time of a response is when its
first bytes were sent to the client. When the server resets, ends or stops answering a connection,
the relay does the same to the client's connection.
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

RESET = struct.pack('ii', 1, 0)  # linger for 0 s: close() sends a reset


class Relay:
    """Listens during its whole life, so that the port stays the same while servers change:
    `lead_to` names the next server."""

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
        """`came_at`: when the response arrived, before it was forwarded. The client may have it
        before this relay runs again."""
        request.ended_at, request.status = time.time(), status
        wait = fields.named_wait(lines, status in self._setup.refused, self._setup.windows, came_at)
        request.wait_until = came_at + wait if wait > 0 else 0


class Pair:
    """A connection of a client, and the connection to the server to which it is forwarded."""

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
            await asyncio.gather(*ways, return_exceptions=True)  # no task uses the sockets any more
            for each in (self._client, self._server):
                if each is not None:
                    each.close()

    def _end(self, up, down):
        """One side has closed its connection: closes the other in the same way."""
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
        """Reads a request that may have arrived meanwhile; a server that refuses connections does
        not wait for it."""
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
            with contextlib.suppress(OSError):  # _down detects the error
                await loop.sock_sendall(self._server, data)

    async def _down(self):
        loop = asyncio.get_running_loop()
        while data := await loop.sock_recv(self._server, 65536):
            came_at = time.time()
            with contextlib.suppress(OSError):  # _up detects the error
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
    """The server behind the limiters: answers each request after the same delay."""

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
    """Starts it and returns (port, server)."""
    server = await asyncio.get_running_loop().create_server(lambda: SlowAnswers(latency_s), '127.0.0.1', 0, backlog=512)
    return server.sockets[0].getsockname()[1], server
