#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/tally, which decides whether CI passes, counts correctly."""
import json
import os
import subprocess
import sys
import tempfile

import guard

OK = '[ RUN      ] {0}\n[       OK ] {0}\n'
SKIPPED = '[ RUN      ] {0}\n[  SKIPPED ] {0}\n'
NAMED = 'gates_keep_the_laws_under_all_faults'  # a test that the row V1 names
GUARD = 'clang_tidy_reports_no_problem'           # a guard that the row L3 names
FAILED = '[ RUN      ] {0}\n[  FAILED  ] {0}\n'


def log(name, result, stdout='', stderr=''):
    return json.dumps({'name': name, 'result': result, 'stdout': stdout, 'stderr': stderr})


# description -> ([(build, its exit status, its tests)], the last line, the exit status)
CASES = {
    'two cases and a test that is one case': (
        [('a', 0, [log('p', 'OK', OK.format('x') + 'no newline' + OK.format('y')), log('g', 'OK')])],
        '3 passed, 0 failed', 0),
    'the same case in two builds is one case': (
        [('a', 0, [log('p', 'OK', OK.format('x'))]), ('b', 0, [log('p', 'OK', OK.format('x'))])],
        '1 passed, 0 failed', 0),
    'a case that fails in one build has failed': (
        [('a', 0, [log('p', 'OK', OK.format('x'))]), ('b', 1, [log('p', 'FAIL', FAILED.format('x'))])],
        '0 passed, 1 failed', 1),
    'cmocka lists a failure twice, and it counts once': (
        [('a', 1, [log('p', 'FAIL', OK.format('y') + FAILED.format('x'),
                       '[  FAILED  ] 1 test(s), listed below:\n[  FAILED  ] x\n')])], '1 passed, 1 failed', 1),
    'a crash fails the case that ran': (
        [('a', 1, [log('p', 'ERROR', OK.format('y') + '[ RUN      ] x\n')])], '1 passed, 1 failed', 1),
    'a program that fails though its cases pass has failed': (
        [('a', 1, [log('p', 'FAIL', OK.format('x'), 'WARNING: ThreadSanitizer: data race')])],
        '1 passed, 1 failed', 1),
    'a skipped test is neither': ([('a', 0, [log('g', 'SKIP'), log('h', 'OK')])], '1 passed, 0 failed', 0),
    'a test that a row names must not be skipped': (
        [('test', 0, [log('p', 'OK', OK.format('x') + SKIPPED.format(NAMED)), log('h', 'OK')])], '2 passed, 1 failed', 1),
    'nor all of a program': ([('test', 0, [log(GUARD, 'SKIP'), log('h', 'OK')])], '1 passed, 1 failed', 1),
    'but by a sanitizer': ([('asan', 0, [log('p', 'OK', OK.format('x') + SKIPPED.format(NAMED))])], '1 passed, 0 failed', 0),
    'a build that broke before its tests has failed': ([('a', 2, [])], '0 passed, 1 failed', 1),
    'a build that ran nothing has failed': ([('a', 0, [])], '0 passed, 1 failed', 1),
}


def shows_what_failed(root):
    """The output of a failed test is shown, even if much output of passing tests follows it."""
    said = OK.format('a') + '[ RUN      ] x\nwhy x failed\n[  FAILED  ] x\n'
    said += ''.join(f'[ RUN      ] y{i}\nall is well\n[       OK ] y{i}\n' for i in range(100))
    with tempfile.TemporaryDirectory() as folder:
        guard.write_tree(folder, {'a/meson-logs/testlog.json': log('p', 'FAIL', said) + '\n'})
        shown = subprocess.run([sys.executable, os.path.join(root, 'tools', 'tally'), f'a:1:{folder}/a'], capture_output=True,
                               text=True).stdout
    if 'why x failed' not in shown or 'all is well' in shown:
        print(f'what a failed case said is not shown: {shown}')
        return False
    return True


def main(root):
    wrong = 0
    for what, (builds, line, status) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            words = []
            for name, ended, tests in builds:
                if tests:
                    guard.write_tree(folder, {f'{name}/meson-logs/testlog.json': '\n'.join(tests) + '\n'})
                words.append(f'{name}:{ended}:{os.path.join(folder, name)}')
            run = subprocess.run([sys.executable, os.path.join(root, 'tools', 'tally'), *words], capture_output=True,
                                 text=True)
            last = (run.stdout.splitlines() or [''])[-1]
            if (last, run.returncode) != (line, status):
                print(f'{what}: "{last}" and {run.returncode}, wanted "{line}" and {status}{run.stderr}')
                wrong += 1
    wrong += not shows_what_failed(root)
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    main(sys.argv[1])
