#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every C file is formatted as .clang-format says. Versions of clang-format differ, so only version
14 of Debian 12 is used.

A file is checked again when the file, .clang-format or the tool has changed.
"""
import concurrent.futures
import os
import re
import shutil
import subprocess

import guard
import remembered

VERSION = '14'
TOOL = shutil.which('clang-format-14') or shutil.which('clang-format')


PORTION = 20  # files per call


def complaints(root, files):
    """Returns the errors that clang-format reports for these files."""
    run = subprocess.run([TOOL, '--dry-run', '-Werror', f'--style=file:{STYLE}', *files], cwd=root,
                         capture_output=True, text=True)
    lines = [f'{line} (make format mends it)' for line in run.stderr.splitlines() if ': error: ' in line]
    if run.returncode and not lines:
        lines = [run.stderr.strip() or f'clang-format ended with {run.returncode}']
    return lines


def findings(root, build):
    if TOOL is None:
        raise guard.Missing(f'there is no clang-format here; version {VERSION} is wanted')
    version = subprocess.run([TOOL, '--version'], capture_output=True, text=True).stdout.strip()
    if not re.search(rf'version {VERSION}\.', version):
        raise guard.Skip(f'clang-format {VERSION} is wanted, and this is "{version}"')
    files = guard.tracked(root, '.c', '.h')
    known, kept = remembered.Digests(), remembered.Remembered(build, 'layout')
    digest_of = {name: remembered.of_text(version, known.of_file(STYLE), known.of_file(os.path.join(root, name)))
                 for name in files}
    changed = [name for name in files if kept.get(name, digest_of[name]) is None]
    portions = [changed[i:i + PORTION] for i in range(0, len(changed), PORTION)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for portion, lines in zip(portions, pool.map(lambda portion: complaints(root, portion), portions)):
            yield from lines
            for name in portion if not lines else []:
                kept.keep(name, digest_of[name], True)
    kept.save()


STYLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '.clang-format')
BAD = {'two spaces of indent': {'x.c': 'int x(void)\n{\n  return 0;\n}\n'}}
GOOD = {'x.c': 'int x(void)\n{\n    return 0;\n}\n'}

if __name__ == '__main__':
    guard.main(findings, BAD, GOOD)
