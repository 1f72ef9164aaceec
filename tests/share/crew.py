# SPDX-License-Identifier: MIT
"""Processes of weir fetch that share the gate of an origin through a store."""
import os
import subprocess
import tempfile


class Crew:
    """`count` processes, each with `urls` URLs of the origin: /I/J is the J-th of process I.
    `stores` are addresses of the same store, which the processes use in turn; without any, the
    processes share nothing."""

    def __init__(self, weir, origin, stores, count, urls, *options):
        self.folder = tempfile.TemporaryDirectory(prefix='weir-crew-')
        self.processes = []
        self._weir, self._origin, self._stores, self._urls, self._options = weir, origin, stores, urls, options
        for _ in range(count):
            self.add()

    def add(self):
        """Starts one more process."""
        i = len(self.processes)
        share = ['--share', self._stores[i % len(self._stores)]] if self._stores else []
        words = [self._weir, 'fetch', '--allow-private', '--ignore-robots', '--quiet', '--agent', f'p{i}', '--attempts', '100',
                 '--out', self.path(i, 'out'), '--urls-file', self.path(i, 'in'), *share, *self._options]
        with open(self.path(i, 'in'), 'w', encoding='ascii') as file:
            file.writelines(self._origin.url(f'{i}/{j}') + '\n' for j in range(self._urls))
        with open(self.path(i, 'err'), 'wb') as err:
            self.processes.append(subprocess.Popen(words, stderr=err))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
        self.folder.cleanup()

    def path(self, i, kind):
        return os.path.join(self.folder.name, f'{i}.{kind}')

    def said(self, i):
        with open(self.path(i, 'err'), encoding='utf-8') as file:
            return file.read()

    def wait(self, seconds=120):
        """Returns the exit statuses, and prints the error output of each process."""
        ended = [process.wait(seconds) for process in self.processes]
        for i in range(len(ended)):
            print(end=self.said(i))
        return ended
