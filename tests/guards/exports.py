#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The shared libraries export what the public headers promise: all of it, and nothing else but the seam between them.

libweir-http has the headers of HTTP below, libweir the others. libweir also exports the functions that WR_SEAM marks, under a
version of their own, and each of them is one that libweir-http calls. libweir needs no library but those of C."""
import os
import re
import subprocess

import guard

PROMISE = re.compile(r'^WEIR_API\b[^;{]*?\b(\w+)\s*\(', re.M)
SEAM = re.compile(r'^WR_SEAM\b[^;{]*?\b(\w+)\s*\(', re.M)
HTTP = ('client.h', 'curl.h', 'handler.h', 'web.h')
OF_C = re.compile(r'lib(c|m|pthread)\.so|ld-linux|ld64|linux-vdso')


def symbols(library, *words):
    """{name: its version} of a library's symbols."""
    text = subprocess.run(['nm', '-D', '-P', *words, library], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0].partition('@') for line in text.splitlines() if not line.endswith(' A')]
    return {name: version.lstrip('@') for name, _, version in names if not name.startswith('WEIR_')}


def declared(root, pattern, where):
    return {name: path for path in guard.tracked(root, '.h') if path.startswith(where)
            for name in pattern.findall(guard.bare(guard.read(root, path)))}


def compare(library, there, promised):
    for name in sorted(set(there) - set(promised)):
        yield f'{library} exports {name}, which no public header of it declares with WEIR_API'
    for name in sorted(set(promised) - set(there)):
        yield f'{promised[name]} promises {name}, which {library} does not export'


def findings(root, build):
    core, http = (os.path.join(build, name) for name in ('libweir.so', 'libweir-http.so'))
    of_core, of_http = symbols(core, '--defined-only'), symbols(http, '--defined-only')
    promised = declared(root, PROMISE, 'include/')
    is_http = {name: os.path.basename(path) in HTTP for name, path in promised.items()}
    seam, wanted = declared(root, SEAM, 'src/'), symbols(http, '--undefined-only')
    yield from compare('libweir.so', {name for name in of_core if name not in seam},
                       {name: path for name, path in promised.items() if not is_http[name]})
    yield from compare('libweir-http.so', of_http, {name: path for name, path in promised.items() if is_http[name]})
    for name in sorted(seam):
        if name not in of_core or not of_core[name].startswith('WEIR_PRIVATE_'):
            yield f'{seam[name]} marks {name} with WR_SEAM, and libweir.so does not export it as WEIR_PRIVATE_…'
        elif name not in wanted:
            yield f'{seam[name]} marks {name} with WR_SEAM, and libweir-http.so does not call it'
    needed = subprocess.run(['readelf', '-d', core], capture_output=True, text=True, check=True).stdout
    for name in re.findall(r'NEEDED.*\[(.*)\]', needed):
        if not OF_C.match(name):
            yield f'libweir.so needs {name}; only the libraries of C may be needed'


MAP = 'WEIR_0 { global: weir_*; local: *; };\nWEIR_PRIVATE_1 { global: wr_*; };\n'


def judged(root, build):
    if root == build:  # a self-test: make its libraries first
        compiler = os.environ.get('CC', 'cc').split()[0]
        guard.write_tree(root, {'map': MAP})
        flags = ['-shared', '-fPIC', '-w', '-nostdlib', f'-L{root}']
        subprocess.run([compiler, *flags, f'{root}/x.c', '-o', f'{root}/libweir.so', f'-Wl,--version-script={root}/map'],
                       check=True)
        subprocess.run([compiler, *flags, f'{root}/y.c', '-o', f'{root}/libweir-http.so', '-lweir'], check=True)
    return findings(root, build)


HEADERS = {'include/weir/x.h': '/* WEIR_API int weir_talk(void); */\nWEIR_API int weir_x(void);\n',
           'include/weir/client.h': 'WEIR_API int weir_y(void);\n', 'src/base/z.h': 'WR_SEAM int wr_z(void);\n'}
X = 'int weir_x(void) { return 0; }\nint wr_z(void) { return 0; }\n'
Y = 'int wr_z(void);\nint weir_y(void) { return wr_z(); }\n'
BAD = {
    'a private symbol that is exported': {**HEADERS, 'x.c': X + 'int wr_y(void) { return 0; }\n', 'y.c': Y},
    'an export without a declaration': {**HEADERS, 'x.c': X + 'int weir_y;\n', 'y.c': Y},
    'a declaration without a function': {**HEADERS, 'x.c': X.replace('int weir_x', 'static int weir_x'), 'y.c': Y},
    'a function in the other library': {**HEADERS, 'x.c': X + 'int weir_y(void) { return 0; }\n',
                                        'y.c': 'int wr_z(void);\nstatic int a(void) { return wr_z(); }\nint weir_b(void) { return a(); }\n'},
    'a mark that is not needed': {**HEADERS, 'x.c': X, 'y.c': 'int weir_y(void) { return 0; }\n'},
}
GOOD = {**HEADERS, 'x.c': X, 'y.c': Y}

if __name__ == '__main__':
    guard.main(judged, BAD, GOOD)
