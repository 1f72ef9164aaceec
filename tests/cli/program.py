# SPDX-License-Identifier: MIT
"""Runs weir, whose path is the test program's first argument."""
import os
import resource
import subprocess
import sys


def weir(*words, **more):
    """The finished run: returncode, stdout and stderr as text."""
    return subprocess.run([os.path.abspath(sys.argv[1]), *words], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=more.pop('timeout', 60), **more)


def limit_memory(megabytes):
    """A function that limits the address space of the process that calls it."""
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))


def least_memory():
    """The megabytes of address space that the program takes before it does anything."""
    return next(megabytes for megabytes in range(8, 1000, 2)
                if weir('--version', preexec_fn=limit_memory(megabytes)).returncode == 0)


def refusal(*words):
    """The one line with which weir refuses these words, checked to be one, alone, and with status 2."""
    run = weir(*words)
    assert run.returncode == 2, f'{words}: status {run.returncode}'
    assert run.stdout == '', f'{words}: printed {run.stdout!r}'
    assert run.stderr.endswith('\n') and run.stderr.count('\n') == 1, f'{words}: not one line: {run.stderr!r}'
    return run.stderr.rstrip('\n')
