# SPDX-License-Identifier: MIT
"""Runs weir, whose path is the test program's first argument."""
import os
import subprocess
import sys


def weir(*words, **more):
    """The finished run: returncode, stdout and stderr as text."""
    return subprocess.run([os.path.abspath(sys.argv[1]), *words], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=60, **more)


def refusal(*words):
    """The one line with which weir refuses these words, checked to be one, alone, and with status 2."""
    run = weir(*words)
    assert run.returncode == 2, f'{words}: status {run.returncode}'
    assert run.stdout == '', f'{words}: printed {run.stdout!r}'
    assert run.stderr.endswith('\n') and run.stderr.count('\n') == 1, f'{words}: not one line: {run.stderr!r}'
    return run.stderr.rstrip('\n')
