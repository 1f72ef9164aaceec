# SPDX-License-Identifier: MIT
"""Runs weir, whose path is the test program's first argument."""
import os
import resource
import subprocess
import sys

PATIENCE_S = 120  # time limit for an expected event; machines that run tests may be very busy


def weir(*words, **more):
    """Runs weir and returns the finished run: returncode, stdout and stderr as text."""
    return subprocess.run([os.path.abspath(sys.argv[1]), *words], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=more.pop('timeout', PATIENCE_S), **more)


def limit_memory(megabytes):
    """Returns a function that limits the address space of the process that calls it."""
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))


def least(works, begin=8):
    """Returns the smallest number of megabytes, at least `begin`, with which `works` is true, to
    within 2. It searches in steps of 16 first."""
    enough = next(megabytes for megabytes in range(begin, 2000, 16) if works(megabytes))
    return next(megabytes for megabytes in range(max(begin, enough - 14), enough + 1, 2) if works(megabytes))


def least_memory():
    """Returns the megabytes of address space that the program needs to print its version."""
    return least(lambda megabytes: weir('--version', preexec_fn=limit_memory(megabytes)).returncode == 0)


def refusal(*words):
    """Returns the line with which weir refuses these arguments. Checks that it is the only output
    and that the status is 2."""
    run = weir(*words)
    assert run.returncode == 2, f'{words}: status {run.returncode}'
    assert run.stdout == '', f'{words}: printed {run.stdout!r}'
    assert run.stderr.endswith('\n') and run.stderr.count('\n') == 1, f'{words}: not one line: {run.stderr!r}'
    return run.stderr.rstrip('\n')
