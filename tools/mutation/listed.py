# SPDX-License-Identifier: MIT
"""Reads tests/mutants.txt: mutants that change nothing observable, each with the reason.

    src/core/limit/stack.c function
    - the line as it is
    + the line with the fault
    Why it makes no difference.

A fault is known by its function and the two lines, without indentation and comments, wherever they stand in the file.
"""
import os

import faults


def read(path):
    """Returns {(path, function, line as it is, line with the fault): reason}."""
    found = {}
    if not os.path.exists(path):
        return found
    with open(path, encoding='utf-8') as file:
        for piece in file.read().split('\n\n'):
            lines = [line for line in piece.splitlines() if line.strip() and not line.startswith('#')]
            if not lines:
                continue
            if len(lines) < 4 or len(lines[0].split()) != 2 or lines[1][:2] != '- ' or lines[2][:2] != '+ ':
                raise SystemExit(f'{path}: this is no fault with a reason:\n{piece}')
            key = (*lines[0].split(), *(faults.without_comments(line[2:]) for line in lines[1:3]))
            if key in found:
                raise SystemExit(f'{path}: {lines[0]} a second time:\n{piece}')
            found[key] = ' '.join(lines[3:])
    return found
