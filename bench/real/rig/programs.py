# SPDX-License-Identifier: MIT
"""Runs programs in their own folders; they end when the rig ends, however it ends."""
import contextlib
import ctypes
import os
import random
import shutil
import signal
import socket
import subprocess
import time

SERVICES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'services')
START_S = 180  # a busy machine may start many programs at once
LOWEST_PORT = 2048
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
PATH = os.environ['PATH'] + ':/usr/sbin:/sbin'


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port():
    """Returns a port outside the range from which the kernel assigns ports to connections, so that
    it stays free."""
    with open('/proc/sys/net/ipv4/ip_local_port_range', encoding='ascii') as file:
        lowest, highest = map(int, file.read().split())
    below, above = range(LOWEST_PORT, lowest), range(highest + 1, 65536)
    for _ in range(100):
        port = random.SystemRandom().choice(max(below, above, key=len))
        with socket.socket() as probe:
            try:
                probe.bind(('127.0.0.1', port))
            except OSError:
                continue
            return port
    raise AssertionError('no port is free')


def has(command):
    return subprocess.run(['sh', '-c', command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          env={**os.environ, 'PATH': PATH}, check=False).returncode == 0


def start(words, folder, env=None, log='log'):
    """Starts a program in its own session, so that stop() also ends its children."""
    with open(f'{folder}/{log}', 'ab') as file:
        return subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True,
                                preexec_fn=die_with_parent, env={**os.environ, 'PATH': PATH, **(env or {})})


def hurry(process):
    """Gives each thread of the process and of its children real-time priority."""
    for name in os.listdir('/proc'):
        with contextlib.suppress(OSError):
            if name.isdigit() and os.getsid(int(name)) == process.pid:
                hurry_threads(name)


def hurry_threads(pid, policy=os.SCHED_RR):
    for thread in os.listdir(f'/proc/{pid}/task'):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setscheduler(int(thread), policy, os.sched_param(1))


def hurry_self():
    """Gives this process real-time priority. Programs that it starts do not inherit the priority:
    many servers that start at once would stop everything else."""
    hurry_threads('self', os.SCHED_RR | os.SCHED_RESET_ON_FORK)


def stop(process, how=signal.SIGTERM, patience_s=3):
    """Sends the signal; kills the process and its children if they have not ended after
    `patience_s`."""
    process.send_signal(how)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(patience_s)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Running:
    """A server of a setup, from start() to stop(). `origin` is the port of the slow responses
    behind it."""

    def __init__(self, server, folder, origin, latency_ms, modules):
        self._server, self._folder = server, folder
        self.port = free_port()
        self._values = {'port': self.port, 'origin': origin, 'folder': folder, 'services': SERVICES, 'latency_ms': latency_ms}
        self._modules = modules

    def _fill(self, text):
        for name, value in self._values.items():
            text = text.replace(f'@{name}@', str(value))
        return text

    def start(self):
        shutil.rmtree(self._folder, ignore_errors=True)
        os.makedirs(self._folder)
        for name, text in self._server.files.items():
            with open(f'{self._folder}/{name}', 'w', encoding='utf-8') as file:
                file.write(self._fill(text))
        env = {name: self._fill(value) for name, value in self._server.env.items()}
        words = [self._fill(word) for word in self._server.words]
        self._process = start(words, self._folder, {'MODULES': self._modules or '', 'NODE_ENV': 'production', **env})
        try:
            self._wait()
        except BaseException:
            stop(self._process)
            raise

    def _wait(self):
        end = time.monotonic() + START_S
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(('127.0.0.1', self.port)) == 0:
                    return
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f'does not start: {self.said()}')
            time.sleep(0.05)

    def hurry(self):
        hurry(self._process)

    def problem(self):
        """Returns why the server has ended; None if it runs."""
        return None if self._process.poll() is None else f'the server ended: {self.said()}'

    def said(self):
        with open(f'{self._folder}/log', encoding='utf-8', errors='replace') as file:
            return file.read()[-2000:]

    def stop(self):
        stop(self._process)
