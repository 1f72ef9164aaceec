# SPDX-License-Identifier: MIT
"""Runs weir thousands of times with one run of the dynamic loader, which would take longer than
most commands (spawner.c).

    with Spawner(path_of_the_program) as spawner:
        run = spawner.run('url', 'http://a.example/')     a subprocess.CompletedProcess

`env` and `cwd` mean the same as in subprocess.run.
"""
import array
import contextlib
import os
import socket
import struct
import subprocess

PATIENCE_S = 120


class Spawner:
    def __init__(self, program):
        self.program, self.process = os.path.abspath(program), None

    def __enter__(self):
        return self

    def _begin(self):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE_S)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 19)
        with theirs:
            self.process = subprocess.Popen([self.program], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env={
                **os.environ, 'LD_PRELOAD': os.environ['WEIR_TEST_SPAWNER'], 'WEIR_TEST_SPAWNER_FD': str(theirs.fileno())})

    def __exit__(self, *_):
        if self.process:
            self.socket.close()
            assert self.process.wait(timeout=PATIENCE_S) == 0

    def run(self, *words, env=None, cwd='.'):
        """Returns the finished run. Output that is not UTF-8 is replaced."""
        if not self.process:
            self._begin()
        assert all(words), 'an empty argument would end the list of arguments'
        texts = [os.path.abspath(cwd), self.program, *words, '',
                 *(f'{name}={value}' for name, value in (env or os.environ).items())]
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(open(os.devnull, 'rb')),
                     *(stack.enter_context(os.fdopen(os.memfd_create(name), 'w+b')) for name in ('out', 'errors'))]
            streams = array.array('i', [file.fileno() for file in files])
            self.socket.sendmsg([b''.join(os.fsencode(text) + b'\0' for text in texts)],
                                [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
            answer = self.socket.recv(4)
            assert len(answer) == 4, f'{self.program} has ended'
            out, errors = (os.pread(file.fileno(), 1 << 24, 0).decode(errors='replace') for file in files[1:])
        return subprocess.CompletedProcess(texts[1:len(words) + 2], os.waitstatus_to_exitcode(struct.unpack('i', answer)[0]), out, errors)
