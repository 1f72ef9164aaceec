# SPDX-License-Identifier: MIT
"""Processes of weir fetch that share an origin's gate through a store."""
import os
import subprocess
import tempfile


class Crew:
    """`count` of them, each with so many URLs of the origin, /I/J for the J-th of process I. `redis` None: each on its own."""

    def __init__(self, weir, origin, redis, count, urls, *options):
        self.folder = tempfile.TemporaryDirectory(prefix='weir-crew-')
        self.processes = []
        share = ['--share', f'unix:{redis.path}'] if redis else []
        for i in range(count):
            words = [weir, 'fetch', '--allow-private', '--ignore-robots', '--quiet', '--agent', f'p{i}', '--attempts', '100',
                     '--out', self.path(i, 'out'), '--urls-file', self.path(i, 'in'), *share, *options]
            with open(self.path(i, 'in'), 'w', encoding='ascii') as file:
                file.writelines(origin.url(f'{i}/{j}') + '\n' for j in range(urls))
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
