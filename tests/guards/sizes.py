#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Functions and files stay small enough to be read at once."""
import os

import guard

BODY_LINES = 60
FILE_LINES = 600

# Exceptions: 'path' or 'path:function' -> reason.
ALLOWED = {
}


def bodies(text):
    """Yields (name, lines of its body) of each function. The layout guard ensures that only the
    braces of functions stand alone at the left margin."""
    start, name = None, ''
    lines = guard.bare(text).split('\n')
    for number, line in enumerate(lines):
        if line.rstrip() == '{' and start is None:
            start = number
            head = number - 1
            while head > 0 and '(' not in lines[head]:
                head -= 1
            while head > 0 and lines[head][:1].isspace():  # a function head of several lines
                head -= 1
            name = lines[head].split('(')[0].split()[-1].lstrip('*') if '(' in lines[head] else '?'
        elif line.startswith('}') and start is not None:
            yield name, number - start - 1
            start = None


def findings(root, _build):
    used = set()
    for path in guard.tracked(root, '.c', '.h'):
        text = guard.read(root, path)
        sizes = [(path, text.count('\n'), FILE_LINES)]
        sizes += [(f'{path}:{name}', lines, BODY_LINES) for name, lines in bodies(text)]
        for what, lines, most in sizes:
            if lines > most:
                used.add(what)
                if what not in ALLOWED:
                    yield f'{what} has {lines} lines; {most} are enough for one thought'
    for what in sorted(set(ALLOWED) - used):
        if os.path.exists(os.path.join(root, 'meson.build')):  # not in a self-test
            yield f'{what} is allowed to be large, and is not: take it off the list'


def function(lines):
    return 'static int\nx(int a,\n  int b)\n{\n' + '    a++;\n' * lines + '}\n'


BAD = {
    'a function that is too long': {'x.c': function(BODY_LINES + 1)},
    'a file that is too long': {'x.c': 'int x;\n' * (FILE_LINES + 1)},
}
GOOD = {'x.c': function(BODY_LINES) * 2 + 'struct s {\n' + '    int a;\n' * 100 + '};\n'}

if __name__ == '__main__':
    guard.main(findings, BAD, GOOD)
