#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A struct, union or enum of src/ and include/, and a macro that other files see, has one definition in the whole program.

Two layouts under one tag are legal in C, and a debugger or a reader who searches for one finds the other. Constants that
one .c file defines for itself may have the name of another file's."""
import collections
import re

import guard

TAG = re.compile(r'\b(struct|enum|union)\s+(\w+)\s*\{')
MACRO = re.compile(r'^[ \t]*#[ \t]*define[ \t]+(\w+)', re.M)
UNDEFINED = re.compile(r'^[ \t]*#[ \t]*undef[ \t]+(\w+)', re.M)

SHARED = re.compile(r'WR_|WEIR_')


def findings(root, _build):
    tags, macros = collections.defaultdict(list), collections.defaultdict(set)
    for path in guard.tracked(root, '.c', '.h'):
        if not path.startswith(('src/', 'include/')):
            continue
        text = guard.bare(guard.read(root, path))
        for kind, name in TAG.findall(text):
            tags[name].append(f'{kind} in {path}')
        for name in set(MACRO.findall(text)) - set(UNDEFINED.findall(text)):
            if path.endswith('.h') or SHARED.match(name):
                macros[name].add(path)
    for name, places in sorted(tags.items()):
        if len(places) > 1:
            yield f'{name} is defined {len(places)} times: {", ".join(places)}'
    for name, places in sorted(macros.items()):
        if len(places) > 1:
            yield f'the macro {name} is defined in {", ".join(sorted(places))}'


BAD = {
    'a tag of two files': {'src/a/x.c': 'struct row {\n    int a;\n};\n', 'src/b/y.c': 'struct row {\n    int b;\n};\n'},
    'a struct and an enum of one tag': {'src/a/x.h': 'struct kind {\n    int a;\n};\n', 'src/a/y.h': 'enum kind { A };\n'},
    'a macro of two headers': {'src/a/x.h': '#define ROWS 3\n', 'src/b/y.h': '#define ROWS 4\n'},
    'a shared macro of two files': {'src/a/x.h': '#define WR_ROWS 3\n', 'src/b/y.c': '#define WR_ROWS 4\n'},
}
GOOD = {'src/a/x.h': 'struct row;\nstruct row *next(struct row *);\n#define X(a) a,\n#undef X\n',
        'src/a/x.c': 'struct row {\n    int a; /* struct row { */\n};\n#define X(a) #a,\n#define ROWS 3\n',
        'src/b/y.c': '#define X(a) a\n#define ROWS 4\n', 'tests/t.c': 'struct row {\n    int b;\n};\n'}

if __name__ == '__main__':
    guard.main(findings, BAD, GOOD)
