#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/requirements.md and docs/faults.md are complete and correct.

Each requirement has one row, `| S3-8 | a few words | test_name, other_test |` or `| … | not yet |`,
and each named test is in the list of a test program that Meson runs. Tests that are not programs of
tests (guards, examples) have their Meson name. A number in the words must be in the name of one of
the row's tests, or in its text, or in definitions of the same file that the test uses. tools/tally
checks that none of these tests was skipped.
"""
import concurrent.futures
import json
import os
import re
import subprocess

import guard
import remembered
from numbers_of import Tests

LEDGERS = {
    'docs/requirements.md': {'S0-': 108, 'S1-': 32, 'S2-': 32, 'S3-': 47, 'S4-': 19, 'R': 30, 'U': 16, 'N1-': 7, 'N6-': 7},
    'docs/faults.md': {'V': 10, 'A': 20, 'B': 15, 'C': 12, 'D': 10, 'E': 7, 'F': 11, 'G': 10, 'H': 6, 'I': 7, 'J': 15,
                       'K': 7, 'L': 5, 'M': 14, 'T': 19},
}
ROW = re.compile(r'^\| *((?:[SN]\d-|[A-Z])\d+) *\|(.*)\|([^|]*)\| *$')
NOT_YET = 'not yet'


def listed(program):
    """Returns the names of the tests of a program."""
    run = subprocess.run([program, '--list'], capture_output=True, text=True, timeout=60)
    if run.returncode:
        raise SystemExit(f'{program} --list ended with {run.returncode}')
    return run.stdout.split()


def known_tests(build):
    """Returns the names under which the documents may cite tests. A program's tests are listed
    again when the program has changed."""
    with open(os.path.join(build, 'meson-info', 'intro-tests.json'), encoding='utf-8') as file:
        tests = json.load(file)
    programs, names = set(), set()
    for test in tests:
        program = next((word for word in test['cmd'] if os.path.basename(word).startswith('test_')), None)
        if program is None:
            names.add(test['name'])
        else:
            programs.add(program)
    known, kept = remembered.Digests(), remembered.Remembered(build, 'ledger')
    changed = [program for program in sorted(programs) if kept.get(program, known.of_file(program)) is None]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for program, found in zip(changed, pool.map(listed, changed)):
            kept.keep(program, known.of_file(program), found)
    kept.save()
    return names.union(*(kept.get(program, known.of_file(program)) for program in programs))


def check(root, path, series, known, tests_of):
    wanted = [f'{letter}{number}' for letter, last in series.items() for number in range(1, last + 1)]
    seen = set()
    for number, line in enumerate(guard.read(root, path).split('\n'), 1):
        if not re.match(r'\| *[A-Z]\d', line):
            continue
        match = ROW.match(line)
        if not match:
            yield f'{path}:{number}: not a row of the form | id | words | tests |'
            continue
        name, words, tests = (part.strip() for part in match.groups())
        if name not in wanted:
            yield f'{path}:{number}: there is no {name}'
        if name in seen:
            yield f'{path}:{number}: {name} a second time'
        seen.add(name)
        if not words:
            yield f'{path}:{number}: {name} without words'
        tests = [] if tests == NOT_YET else [test.strip() for test in tests.split(',')]
        for test in tests:
            if test not in known:
                yield f'{path}:{number}: {name} names the test "{test}", which no test program has'
        for figure in tests_of.unknown_numbers(words, tests):
            yield f'{path}:{number}: {name} says {figure}, which none of its tests does'
    for name in wanted:
        if name not in seen:
            yield f'{path}: {name} has no row'


def findings(root, build):
    known = known_tests(build)
    tests_of = Tests(root)
    for path, series in LEDGERS.items():
        yield from check(root, path, series, known, tests_of)


C = """#define LIMIT 12
static int twice(int n)
{
    return 34 * n;
}

static void seen(void **state)
{
    assert_int_equal(twice(LIMIT), 5600); /* 99 */
}

static void another(void **state)
{
    assert_int_equal(7, 7);
}
"""


def tree(**changes):
    """Returns a valid pair of documents with some rows changed, and one test program with the test
    `seen`."""
    files = {'meson-info/intro-tests.json': json.dumps([{'name': 'seen', 'cmd': ['/bin/true']}]), 'tests/test_seen.c': C}
    for path, series in LEDGERS.items():
        rows = {f'{letter}{n}': f'| {letter}{n} | words | not yet |' for letter, last in series.items()
                for n in range(1, last + 1)}
        rows.update({name: row for name, row in changes.items() if name in rows})
        files[path] = '\n'.join(rows.values())
    return files


BAD = {
    'a missing row': tree(V8=''),
    'a second row': tree(V8='| V8 | words | not yet |\n| V8 | words | not yet |'),
    'a number that does not exist': tree(V10='| V10 | words | not yet |\n| V11 | words | not yet |'),
    'a test that does not exist': tree(V8='| V8 | words | seen, unseen |'),
    'an empty test': tree(V8='| V8 | words | |'),
    'a row without words': tree(V8='| V8 | | seen |'),
    'a broken row': tree(V8='| V8 | words'),
    'a number that its test has not': tree(V8='| V8 | every 13 s | seen |'),
    'a number of another test': tree(V8='| V8 | every 7 s | seen |'),
    'a number of a comment': tree(V8='| V8 | every 99 s | seen |'),
    'a number in letters': tree(V8='| V8 | every five minutes | seen |'),
}
GOOD = tree(V8='| V8 | every 12 s 34 of 5 600, by RFC 9309 and S0-17, one of them a 5xx | seen |')

if __name__ == '__main__':
    guard.main(findings, BAD, GOOD)
