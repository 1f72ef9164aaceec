# SPDX-License-Identifier: MIT
"""Programs in folders of their own, which end when the rig ends, however it ends."""
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
START_S = 180  # a busy machine starts many at once
LOWEST_PORT = 2048
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
PATH = os.environ['PATH'] + ':/usr/sbin:/sbin'


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port():
    """None that the kernel may give to a connection before it is listened on."""
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
    """In a session of its own: stop() ends its children too."""
    with open(f'{folder}/{log}', 'ab') as file:
        return subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True,
                                preexec_fn=die_with_parent, env={**os.environ, 'PATH': PATH, **(env or {})})


def hurry(process):
    """Each thread of it and of its children goes before all that is not hurried."""
    for name in os.listdir('/proc'):
        with contextlib.suppress(OSError):
            if name.isdigit() and os.getsid(int(name)) == process.pid:
                hurry_threads(name)


def hurry_threads(pid, policy=os.SCHED_RR):
    for thread in os.listdir(f'/proc/{pid}/task'):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setscheduler(int(thread), policy, os.sched_param(1))


def hurry_self():
    """What is started from here is not hurried: many servers that start at once would stop all else."""
    hurry_threads('self', os.SCHED_RR | os.SCHED_RESET_ON_FORK)


def stop(process, how=signal.SIGTERM, patience_s=3):
    """Ends it, and kills what has not ended then."""
    process.send_signal(how)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(patience_s)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Running:
    """A server of a setup, with the port of the slow answers behind it, from start() to stop()."""

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
        """Why the server is not there any more; None if it is."""
        return None if self._process.poll() is None else f'the server ended: {self.said()}'

    def said(self):
        with open(f'{self._folder}/log', encoding='utf-8', errors='replace') as file:
            return file.read()[-2000:]

    def stop(self):
        stop(self._process)
