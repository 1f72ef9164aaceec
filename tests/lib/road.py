# SPDX-License-Identifier: MIT
"""A proxy that acts like a bad network to a server on a Unix socket. It moves the bytes of TCP,
which are late, slow, or held until the network is mended. road.c does the same for tests in C.

    with Road(path_of_a_socket) as road:
        ... 127.0.0.1:{road.port} ...
        road.latency_s = 0.5            delays each piece, in each direction
        road.bytes_a_second = 100       limits the rate of the server's bytes
        road.bytes_down = 60            drops the server's bytes after these, per connection
        road.cut(); road.cut('down')    holds all bytes; only those of the server
        road.mend()                     ends all disturbances
        road.reset()                    resets all open connections
        road.lead_to(path)              switches to another server, as after a failover
    disturb(roads, seconds, chance)     disturbs at random, then mends all
"""
import contextlib
import os
import random
import socket
import struct
import threading
import time

WAYS = ('up', 'down')


class Road:
    def __init__(self, path):
        self._path = path
        self._open = {way: threading.Event() for way in WAYS}
        self._sockets = set()
        self._listener = socket.create_server(('127.0.0.1', 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self.mend()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.reset()
        self.mend()

    def mend(self):
        self.latency_s, self.bytes_a_second, self.bytes_down = 0, None, None
        for way in WAYS:
            self._open[way].set()

    def cut(self, *ways):
        for way in ways or WAYS:
            self._open[way].clear()

    def reset(self):
        for each in list(self._sockets):
            with contextlib.suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
                each.shutdown(socket.SHUT_RD)

    def lead_to(self, path):
        self._path = path
        self.reset()

    def worsen(self, chance):
        what = chance.choice(['cut', 'slow', 'slow', 'trickle', 'reset', 'mend', 'mend'])
        if what == 'cut':
            self.cut(*chance.choice([(), ('up',), ('down',)]))
        elif what == 'slow':
            self.latency_s = min(self.latency_s * 2 or 0.05, 0.5)
        elif what == 'trickle':
            self.bytes_a_second = chance.choice([20, 200])
        elif what == 'reset':
            self.reset()
        else:
            self.mend()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client):
        """Connects to the server once the direction up is not cut."""
        self._open['up'].wait()
        with client, socket.socket(socket.AF_UNIX) as server:
            pair = {client, server}
            with contextlib.suppress(OSError):
                server.connect(self._path)
                self._sockets |= pair
                down = threading.Thread(target=self._carry, args=[server, client, 'down'], daemon=True)
                down.start()
                self._carry(client, server, 'up')
                down.join()
            self._sockets -= pair

    def _carry(self, source, sink, way):
        count = 0
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                count += len(data)
                if way == 'down' and self.bytes_down is not None and count > self.bytes_down:
                    continue
                time.sleep(self.latency_s)
                self._open[way].wait()
                self._write(sink, data, way)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _write(self, sink, data, way):
        while way == 'down' and self.bytes_a_second and data:
            sink.sendall(data[:1])
            data = data[1:]
            time.sleep(1 / self.bytes_a_second)
        sink.sendall(data)


def disturb(roads, seconds, chance):
    """Disturbs the roads at random for this time. Returns the number of disturbances."""
    until = time.monotonic() + seconds
    count = 0
    while time.monotonic() < until:
        chance.choice(roads).worsen(chance)
        count += 1
        time.sleep(chance.uniform(0.1, 0.5))
    for road in roads:
        road.mend()
    return count


def chance():
    """Returns a random source with the seed WEIR_TEST_SEED, or the time. Prints the seed."""
    seed = int(os.environ.get('WEIR_TEST_SEED') or str(int(time.time())), 0)
    print('seed', seed)
    return random.Random(seed)
