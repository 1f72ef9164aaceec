# SPDX-License-Identifier: MIT
"""A redis-server in a temporary folder, and metrics of the processes that share it."""
import re
import socket
import subprocess
import tempfile
import time


class Redis:
    """A Redis on a Unix socket. It may replicate another one over a network path."""

    def __init__(self, primary_road=None):
        self.folder = tempfile.TemporaryDirectory(prefix='weir-share-')
        self.path = f'{self.folder.name}/s'
        self.url = f'unix:{self.path}'
        follow = ['--replicaof', f'127.0.0.1 {primary_road.port}', '--repl-diskless-load', 'on-empty-db'] if primary_road else []
        self.words = ['--repl-diskless-sync-delay', '0', *follow]
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.folder.cleanup()

    def start(self):
        self.process = subprocess.Popen(
            ['redis-server', '--port', '0', '--unixsocket', self.path, '--save', '', '--dir', self.folder.name, *self.words],
            stdout=subprocess.DEVNULL)
        while not self._answers():
            time.sleep(0.01)

    def say(self, *words):
        """Sends one command and returns the first 64 KB of its reply."""
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(self.path)
            peer.sendall(f'*{len(words)}\r\n'.encode() + b''.join(f'${len(word)}\r\n{word}\r\n'.encode() for word in words))
            return peer.recv(65536).decode('latin-1')

    def _answers(self):
        try:
            return self.say('PING') == '+PONG\r\n'
        except OSError:
            return False

    def has_followed(self):
        """Returns true if it has everything that its primary has, as far as it knows."""
        return 'master_link_status:up' in self.say('INFO', 'replication')

    def promote(self):
        self.say('REPLICAOF', 'NO', 'ONE')

    def kill(self):
        self.process.kill()
        self.process.wait()


def figure(page, name):
    """Returns the sum of a metric family, or of those of its samples whose labels begin like this.
    """
    return sum(float(value) for value in re.findall(rf'^{re.escape(name)}\S* (\S+)$', page, re.M))
