#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every C file is laid out as .clang-format says. Versions differ in taste: only Debian 12's version 14 judges."""
import os
import re
import shutil
import subprocess

import guard

VERSION = '14'
TOOL = shutil.which('clang-format-14') or shutil.which('clang-format')


def findings(root, _build):
    if TOOL is None:
        raise guard.Skip(f'there is no clang-format here; version {VERSION} is wanted')
    version = subprocess.run([TOOL, '--version'], capture_output=True, text=True).stdout.strip()
    if not re.search(rf'version {VERSION}\.', version):
        raise guard.Skip(f'clang-format {VERSION} is wanted, and this is "{version}"')
    files = guard.tracked(root, '.c', '.h')
    if not files:
        return
    run = subprocess.run([TOOL, '--dry-run', '-Werror', f'--style=file:{STYLE}', *files], cwd=root,
                         capture_output=True, text=True)
    for line in run.stderr.splitlines():
        if ': error: ' in line:
            yield f'{line} (make format mends it)'
    if run.returncode and ': error: ' not in run.stderr:
        yield run.stderr.strip() or f'clang-format ended with {run.returncode}'


STYLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '.clang-format')
BAD = {'two spaces of indent': {'x.c': 'int x(void)\n{\n  return 0;\n}\n'}}
GOOD = {'x.c': 'int x(void)\n{\n    return 0;\n}\n'}

if __name__ == '__main__':
    guard.main(findings, BAD, GOOD)
