# SPDX-License-Identifier: MIT
"""A real nginx on loopback, in a temporary folder, with a log of its responses."""
import contextlib
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'lib'))

import stamp  # noqa: E402

PATIENCE_S = 120  # time limit of waits for events that must come: a machine that runs tests may be very busy
PROGRAM = shutil.which('nginx') or '/usr/sbin/nginx'

CONF = '''
worker_processes 1; daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections {connections}; }}
http {{
    {temporary}
    log_format times '$msec $server_port $request_method $request_uri $status "$http_user_agent" "$http_x_test"';
    access_log {log};
    keepalive_requests 1000000;
    {http}
    server {{ listen {listen}; root {folder}/www; {server} }}
}}
'''


_reserved = {}  # {port: the socket whose name reserves it}


def free_port():
    """Returns a port that is free at all addresses, that the kernel gives to no connection, and that no other call returns
    while this process lives, in this test or in one that runs beside it: a server may take its time until it listens."""
    for _ in range(1000):
        port = random.SystemRandom().randrange(10240, 32000)
        reservation = socket.socket(socket.AF_UNIX)
        try:
            reservation.bind(f'\0weir-test-port-{port}')  # the kernel forgets the name when the process ends
            with socket.socket() as probe:
                probe.bind(('', port))
        except OSError:
            reservation.close()
            continue
        _reserved[port] = reservation
        return port
    raise AssertionError('no port is free')


ADDRESSES = [f'127.0.0.{number}' for number in range(1, 65)]


class Tls:
    """with Tls() as tls, Nginx(http=tls.http) as nginx: https on tls.port of ADDRESSES;
    tls.authority is the certificate"""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix='weir-tls-')
        self.port = free_port()
        self.authority = f'{self.folder}/authority.pem'
        names = ','.join(f'IP:{address}' for address in ADDRESSES)
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '30', '-subj', '/CN=weir',
                        '-addext', f'subjectAltName={names}', '-keyout', f'{self.folder}/key.pem', '-out',
                        self.authority], check=True, capture_output=True, timeout=60)
        listens = ' '.join(f'listen {address}:{self.port} ssl http2;' for address in ADDRESSES[1:])
        listens += f' listen {ADDRESSES[0]}:{self.port} ssl;'
        self.http = (f'ssl_certificate {self.authority}; ssl_certificate_key {self.folder}/key.pem; gzip on;'
                     f'server {{ {listens} root www; }}')
        self.urls = [f'https://{address}:{self.port}' for address in ADDRESSES]
        return self

    def __exit__(self, *why):
        shutil.rmtree(self.folder)


class Nginx:
    """with Nginx(server='location /x { … }', files={'robots.txt': '…'}) as nginx: …"""

    def __init__(self, server='', http='', files=None, logs=True, everywhere=False, connections=2048):
        self.folder = tempfile.mkdtemp(prefix='weir-nginx-')
        self.port = free_port()
        self.url = f'http://127.0.0.1:{self.port}'
        kinds = ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi')
        for path, text in (files or {}).items():
            place = os.path.join(self.folder, 'www', path)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, 'w', encoding='utf-8') as file:
                file.write(text)
        with open(f'{self.folder}/nginx.conf', 'w', encoding='utf-8') as file:
            file.write(CONF.format(
                folder=self.folder, temporary=' '.join(f'{kind}_temp_path {self.folder}/{kind};' for kind in kinds),
                log=f'{self.folder}/access.log times' if logs else 'off', http=http, server=server,
                connections=connections,
                listen=self.port if everywhere else f'127.0.0.1:{self.port}'))

    def __enter__(self):
        self.process = subprocess.Popen([PROGRAM, '-p', self.folder, '-c', f'{self.folder}/nginx.conf'],
                                        stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(('127.0.0.1', self.port)) == 0:
                    return self
            assert self.process.poll() is None, self.errors()
            time.sleep(0.02)
        raise AssertionError('nginx does not listen')

    def __exit__(self, *why):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder)

    def errors(self):
        with open(f'{self.folder}/error.log', encoding='utf-8') as file:
            return file.read()

    def log(self):
        """Returns [(seconds, method, path, status, agent, x-test)] in the order of the responses.
        """
        bytes_before = -1
        # nginx writes a line after its response
        while (size := os.path.getsize(f'{self.folder}/access.log')) != bytes_before:
            bytes_before = size
            time.sleep(0.05)
        with open(f'{self.folder}/access.log', encoding='utf-8') as file:
            lines = [line.split(' ', 5) for line in file]
        return [(float(at), method, path, int(status), *more.strip().strip('"').split('" "'))
                for at, _, method, path, status, more in lines]


SLACK_S = 0.015  # tolerance of times at a Door: a busy machine may delay weir between reading the clock and writing


class Door:
    """with Nginx() as nginx, Door(nginx) as door: … door.url … door.gaps()

    A proxy before nginx that notes the kernel's arrival time of each request. The log of nginx has
    the time of the response: if the machine delays one response and not the next, the requests seem
    closer than they were sent. `most`: number of requests that pass at once; later ones wait until
    let_on() is called.
    """

    def __init__(self, nginx, most=None):
        self._nginx, self._came, self._most, self._is_open = nginx, [], most, threading.Event()
        self._listener = stamp.listen('')
        self.port = self._listener.getsockname()[1]
        self.url = f'http://127.0.0.1:{self.port}'
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.let_on()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def let_on(self):
        self._is_open.set()

    def gaps(self, address='127.0.0.1'):
        """Returns the seconds between requests to one of the addresses that lead here."""
        times = sorted(at for at, to in self._came if to == address)
        return [later - earlier for earlier, later in zip(times, times[1:])]

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(('127.0.0.1', self._nginx.port))
                for way in (self._ask, client, server), (self._answer, server, client):
                    threading.Thread(target=self._carry, args=way, daemon=True).start()

    @staticmethod
    def _carry(receive, source, sink):
        with contextlib.suppress(OSError):
            while data := receive(source):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def _ask(self, client):
        """Each piece is one request: weir writes a head at once, and the next one after the
        response."""
        data, at = stamp.receive(client)
        if data:
            self._came.append((at, client.getsockname()[0]))
            if self._most is not None and len(self._came) > self._most:
                self._is_open.wait()
        return data

    @staticmethod
    def _answer(server):
        return server.recv(65536)
