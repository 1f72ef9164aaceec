#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The public headers can be included together: no name has two definitions."""
import os
import subprocess

import guard


def findings(root, _build):
    names = [os.path.relpath(path, 'include') for path in guard.tracked(root, '.h') if path.startswith('include/')]
    text = ''.join(f'#include <{name}>\n' for name in names)
    run = subprocess.run([os.environ.get('CC', 'cc').split()[0], '-std=c17', '-fsyntax-only', '-I',
                          os.path.join(root, 'include'), '-x', 'c', '-'], input=text, capture_output=True, text=True)
    yield from (line for line in run.stderr.splitlines() if 'error:' in line)


BAD = {'a name with two meanings': {'include/weir/a.h': 'typedef enum weir_x { A } weir_x;\n',
                                    'include/weir/b.h': 'typedef struct weir_x { int a; } weir_x;\n'}}
GOOD = {'include/weir/a.h': 'typedef struct weir_x { int a; } weir_x;\n', 'include/weir/b.h': 'typedef int weir_y;\n'}

if __name__ == '__main__':
    guard.main(findings, BAD, GOOD)
