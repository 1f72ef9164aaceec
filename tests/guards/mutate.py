#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/mutate finds the mutant that no test detects, and counts the others as killed: on a room of
one file, whose test needs another program. Also, tools/mutate would make each mutant that
tests/mutants.txt lists; otherwise its code has changed since."""
import os
import re
import subprocess
import sys
import tempfile

import guard

MESON = """project('toy', 'c', default_options: ['optimization=0'])
room = static_library('toy', 'src/toy/toy.c')
test('toy', find_program('tests/needs'), args: ['sh', executable('test_toy', 'tests/test_toy.c', link_with: room)], suite: 'unit')
"""
ROOM = """#include <assert.h>

/* if (value > most) is no code here */
int clamped(int value, int most)
{
    assert(most > 0);
    if (value > most)
        return most;
    return value;
}

int never_tested(int value)
{
    return value * 2;
}
"""
TEST = """int clamped(int value, int most);

int main(void)
{
    return clamped(5, 3) != 3 || clamped(2, 3) != 2;
}
"""
EQUIVALENT = """src/toy/toy.c clamped
- if (value > most)
+ if (value >= most)
Both are the same number then.
"""
NEEDS = """#!/bin/sh
shift
exec "$@"
"""
TREE = {'meson.build': MESON, 'tests/needs': NEEDS, 'src/toy/toy.c': ROOM, 'tests/test_toy.c': TEST}
# The expected result of each run: the surviving mutants, and the counts.
UNTESTED = {('never_tested', 'return value * 2;', 'return value / 2;'), ('never_tested', 'return value * 2;', 'return value * 3;'),
            ('never_tested', 'return value * 2;', 'return value * 1;'), ('never_tested', 'return value * 2;', 'return (value * 2) + 1;')}
SAME = ('clamped', 'if (value > most)', 'if (value >= most)')


def run(root, folder, *words):
    tool = [sys.executable, os.path.join(root, 'tools', 'mutate'), '--source', folder, '--jobs', '1', *words, 'toy']
    told = subprocess.run(tool, capture_output=True, text=True, check=True).stdout
    survivors = set(re.findall(r'^src/toy/toy\.c:\d+ (\w+) .*\n- (.*)\n\+ (.*)$', told, re.M))
    return survivors, told.splitlines()[-1]


def wrong(what, got, wanted):
    if got == wanted:
        return 0
    print(f'{what}: {got}, wanted {wanted}')
    return 1


def stale(root):
    """Yields the entries of tests/mutants.txt that tools/mutate would not make."""
    sys.path.insert(0, os.path.join(root, 'tools', 'mutation'))
    import faults
    import listed
    made = {}
    for path, function, old, new in listed.read(os.path.join(root, 'tests', 'mutants.txt')):
        if path not in made:
            text = guard.read(root, path) if os.path.exists(os.path.join(root, path)) else ''
            made[path] = {(fault.function, *faults.changed_lines(text, fault)) for fault in faults.faults_of(path, text)}
        if (function, old, new) not in made[path]:
            yield f'tests/mutants.txt: {path} {function} has no such fault: "{new}"'


def main(root):
    for line in stale(root):
        print(line)
        sys.exit(1)
    with tempfile.TemporaryDirectory() as folder:
        guard.write_tree(folder, TREE)
        os.chmod(os.path.join(folder, 'tests', 'needs'), 0o755)
        build = os.path.join(folder, 'build')
        subprocess.run(['meson', 'setup', build, folder], check=True, capture_output=True)
        subprocess.run(['ninja', '-C', build], check=True, capture_output=True)
        count = 0
        survivors, last = run(root, folder)
        count += wrong('survivors', survivors, UNTESTED | {SAME})
        count += wrong('the score', last, 'toy: 10 faults (seed 1): 5 killed, 0 equivalent, 5 survived: 50.0 %')
        guard.write_tree(folder, {'tests/mutants.txt': EQUIVALENT})
        survivors, last = run(root, folder, '--at', 'toy.c:7')
        count += wrong('survivors of a line', survivors, set())
        count += wrong('the score of a line', last, 'toy: 4 faults: 3 killed, 1 equivalent, 0 survived: 100.0 %')
        sys.exit(1 if count else 0)


if __name__ == '__main__':
    main(sys.argv[1])
