# SPDX-License-Identifier: MIT
"""Processes of weir fetch that share an origin's gate through a store."""
import os
import subprocess
import tempfile


class Crew:
    """`count` of them, each with so many URLs of the origin, /I/J for the J-th of process I. They share through `stores`,
    addresses of the same one, each by the next; without any, each is on its own."""

    def __init__(self, weir, origin, stores, count, urls, *options):
        self.folder = tempfile.TemporaryDirectory(prefix='weir-crew-')
        self.processes = []
        self._weir, self._origin, self._stores, self._urls, self._options = weir, origin, stores, urls, options
        for _ in range(count):
            self.add()

    def add(self):
        """One more."""
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
        """What each of them ended with; what they said is shown."""
        ended = [process.wait(seconds) for process in self.processes]
        for i in range(len(ended)):
            print(end=self.said(i))
        return ended
