#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The shared library exports exactly the functions that the public headers declare."""
import os
import re
import subprocess

import guard

PROMISE = re.compile(r'^WEIR_API\b[^;{]*?\b(\w+)\s*\(', re.M)


def exported(library):
    text = subprocess.run(['nm', '-D', '-P', '--defined-only', library], capture_output=True, text=True,
                          check=True).stdout
    return {line.split()[0].split('@')[0] for line in text.splitlines()}


def findings(root, build):
    library = os.path.join(build, 'libweir.so')
    there = exported(library)
    promised = {name: path for path in guard.tracked(root, '.h') if path.startswith('include/')
                for name in PROMISE.findall(guard.bare(guard.read(root, path)))}
    for name in sorted(there):
        if not name.startswith('weir_'):
            yield f'libweir.so exports {name}, which is no weir_ name'
        elif name not in promised:
            yield f'libweir.so exports {name}, which no public header declares with WEIR_API'
    for name in sorted(set(promised) - there):
        yield f'{promised[name]} promises {name}, which libweir.so does not export'


def judged(root, build):
    if root == build:  # a self-test: compile its library first
        subprocess.run([os.environ.get('CC', 'cc').split()[0], '-shared', '-fPIC', '-w', f'{root}/x.c', '-o',
                        f'{root}/libweir.so'], check=True)
    return findings(root, build)


HEADER = {'include/weir/x.h': '/* WEIR_API int weir_talk(void); */\nWEIR_API int weir_x(void);\n'}
BAD = {
    'a private symbol that is exported': {**HEADER, 'x.c': 'int weir_x(void) { return 0; }\nint wr_y(void) { return 0; }\n'},
    'an export without a declaration': {**HEADER, 'x.c': 'int weir_x(void) { return 0; }\nint weir_y;\n'},
    'a declaration without a function': {**HEADER, 'x.c': 'static int weir_x(void) { return 0; }\n'},
}
GOOD = {**HEADER, 'x.c': 'int weir_x(void) { return 0; }\n'}

if __name__ == '__main__':
    guard.main(judged, BAD, GOOD)
