#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Guards that cache their verdicts (remembered.py) judge a file again when anything has changed
that the verdict depends on: the file, a header, the compiler's command, the settings."""
import json
import os
import subprocess
import sys
import tempfile
import unittest.mock

import guard
import layout
import ledger
import tidy

SOUND = 'int x(int n);\nint x(int n)\n{\n    return n + 1;\n}\n'
RECURSIVE = 'int x(int n);\nint x(int n)\n{\n    return n == 0 ? 0 : x(n - 1);\n}\n'
WITH_HEADER = '#include "h.h"\nint x(int n);\nint x(int n)\n{\n    return n == 0 ? 0 : STEP(n);\n}\n'
NINJA = """rule cc
  command = {command} -MD -MF $out.d -c $in -o $out
  deps = gcc
  depfile = $out.d
build x.o: cc {root}/src/x.c
"""


def compile_tree(root, build, command='cc -std=c17'):
    """Makes a build folder as Meson and ninja do: a compilation database, and a log of the files
    that each compilation read."""
    entry = {'directory': build, 'file': f'{root}/src/x.c', 'command': f'{command} -c {root}/src/x.c', 'output': 'x.o'}
    guard.write_tree(build, {'build.ninja': NINJA.format(root=root, command=command),
                             'compile_commands.json': json.dumps([entry])})
    subprocess.run(['ninja', '-C', build], check=True, stdout=subprocess.DEVNULL)


def tidy_after(root, build, files, **changes):
    guard.write_tree(root, files)
    compile_tree(root, build, **changes)
    return len(list(tidy.findings(root, build)))


def judged_by_tidy(root, build):
    """Yields (what changed, expected number of findings, findings)."""
    yield 'a sound file', 0, tidy_after(root, build, {'src/x.c': SOUND})
    yield 'a changed file', 1, tidy_after(root, build, {'src/x.c': RECURSIVE})
    yield 'a file with a finding, unchanged', 1, tidy_after(root, build, {})
    yield 'a sound header', 0, tidy_after(root, build, {'src/x.c': WITH_HEADER, 'src/h.h': '#define STEP(n) (n)\n'})
    yield 'a changed header', 1, tidy_after(root, build, {'src/h.h': '#define STEP(n) x(n - 1)\n'})
    header = '#ifdef WRONG\n#define STEP(n) x(n - 1)\n#else\n#define STEP(n) (n)\n#endif\n'
    yield 'a header with a condition', 0, tidy_after(root, build, {'src/h.h': header})
    yield 'a changed command', 1, tidy_after(root, build, {}, command='cc -std=c17 -DWRONG')
    yield 'a command changed back', 0, tidy_after(root, build, {})
    with unittest.mock.patch.object(tidy, 'tidy', return_value=['judged again']):
        yield 'nothing', 0, tidy_after(root, build, {})
        with unittest.mock.patch.object(tidy, 'CONFIG', f'{root}/.clang-tidy'):
            yield 'changed settings', 1, tidy_after(root, build, {'.clang-tidy': 'Checks: "-*,misc-no-recursion"\n'})


def judged_by_layout(root, build):
    guard.write_tree(root, {'x.c': SOUND})
    yield 'a sound file', 0, len(list(layout.findings(root, build)))
    guard.write_tree(root, {'x.c': SOUND.replace('    return', '  return')})
    yield 'a changed file', 1, len(list(layout.findings(root, build)))
    yield 'a file with a finding, unchanged', 1, len(list(layout.findings(root, build)))
    guard.write_tree(root, {'x.c': SOUND, '.clang-format': 'BasedOnStyle: LLVM\nIndentWidth: 2\n'})
    yield 'a file changed back', 0, len(list(layout.findings(root, build)))
    with unittest.mock.patch.object(layout, 'STYLE', f'{root}/.clang-format'):
        yield 'changed settings', 1, min(1, len(list(layout.findings(root, build))))


def judged_by_ledger(root, build):
    guard.write_tree(build, {'meson-info/intro-tests.json': json.dumps([{'name': 'n', 'cmd': [f'{root}/test_x']}])})
    for name in ('first', 'second'):
        guard.write_tree(root, {'test_x': f'#!/bin/sh\necho {name}\n'})
        os.chmod(f'{root}/test_x', 0o755)
        yield f'a program with a {name} test', {name}, ledger.known_tests(build)


def main():
    status = 0
    for judged in (judged_by_tidy, judged_by_layout, judged_by_ledger):
        with tempfile.TemporaryDirectory() as root, tempfile.TemporaryDirectory() as build:
            try:
                for what, wanted, found in judged(root, build):
                    if found != wanted:
                        print(f'{judged.__name__}: {what}: {found} findings, and {wanted} are wanted')
                        status = 1
            except guard.Skip as why:
                print(f'{judged.__name__}: {why}')
    sys.exit(status)


if __name__ == '__main__':
    main()
