# SPDX-License-Identifier: MIT
"""A real PostgreSQL on a socket in a temporary folder, for one test or benchmark."""
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

PATIENCE = 60  # time limit for the server to start, s


def _programs():
    found = sorted(glob.glob('/usr/lib/postgresql/*/bin/postgres')) or [shutil.which('postgres')]
    if found[-1] is None:
        raise RuntimeError('PostgreSQL is missing; tools/setup installs it')
    return os.path.dirname(found[-1])


class Postgres:
    """with Postgres() as postgres: … postgres.url … postgres.ask('SELECT …'). The server does not
    run as root."""

    def __init__(self, *settings):
        self._made = 0
        self._settings = [word for setting in settings for word in ('-c', setting)]

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix='weir-postgres-')
        self._who = {'user': 'postgres', 'group': 'postgres'} if os.geteuid() == 0 else {}
        if self._who:
            os.chown(self.folder, pwd.getpwnam('postgres').pw_uid, -1)
        programs = _programs()
        subprocess.run([f'{programs}/initdb', '-D', f'{self.folder}/data', '-U', 'weir', '-A', 'trust', '-E', 'UTF8', '-N',
                        '--no-locale'], check=True, stdout=subprocess.DEVNULL, cwd='/', **self._who)
        self.process = subprocess.Popen(
            [f'{programs}/postgres', '-D', f'{self.folder}/data', '-k', self.folder, '-c', 'listen_addresses=', '-c',
             'fsync=off', '-c', 'max_connections=50', *self._settings],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd='/', **self._who)
        self.url = f'postgres:///postgres?host={self.folder}&user=weir'
        until = time.monotonic() + PATIENCE
        while subprocess.run(['psql', self.url, '-c', ''], capture_output=True, check=False).returncode != 0:
            if time.monotonic() > until:
                self.__exit__()
                raise RuntimeError('PostgreSQL does not answer')
            time.sleep(0.05)
        return self

    def use_another(self):
        """Creates a new database, to which .url and .ask refer from now on."""
        self._made += 1
        self.ask(f'CREATE DATABASE weir{self._made}')
        self.url = f'postgres:///weir{self._made}?host={self.folder}&user=weir'

    def ask(self, sql):
        """Returns the rows as lists of texts."""
        out = subprocess.run(['psql', self.url, '-AtF', '\t', '-c', sql], check=True, capture_output=True, text=True)
        return [line.split('\t') for line in out.stdout.splitlines()]

    def cpu_seconds(self):
        """Returns the processor time of the server and all its children, including those that have
        ended."""
        tick, total = os.sysconf('SC_CLK_TCK'), 0
        for name in glob.glob('/proc/[0-9]*/stat'):
            try:
                with open(name, encoding='ascii', errors='replace') as file:
                    words = file.read().rpartition(')')[2].split()
            except OSError:
                continue
            pid, parent = int(name.split('/')[2]), int(words[1])
            if pid == self.process.pid:
                total += sum(int(word) for word in words[11:15])
            elif parent == self.process.pid:
                total += sum(int(word) for word in words[11:13])
        return total / tick

    def __exit__(self, *why):
        self.process.send_signal(signal.SIGINT)  # unlike SIGQUIT, it is not ignored in a shell's background
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
