# SPDX-License-Identifier: MIT
"""Reads the log of `meson test` (meson-logs/testlog.json), and the cases of test programs in it."""
import json
import os
import re
import subprocess

CASE = re.compile(r'\[( RUN      |       OK |  FAILED  |  SKIPPED )\] ([A-Za-z_]\w*)[ \t]*$', re.M)
WHY = re.compile(r'^skipped: (.*)$', re.M)
GOOD = 'OK', 'EXPECTEDFAIL'


def tests_of(build):
    """Returns the tests of the last run in a build folder, as Meson logs them."""
    path = os.path.join(build, 'meson-logs', 'testlog.json')
    if not os.path.exists(path):
        return []
    with open(path, encoding='utf-8', errors='replace') as file:
        return [json.loads(line) for line in file if line.strip()]


def short_name(test):
    """Returns the name of a test without the suites that Meson puts before it."""
    return test['name'].rsplit(' / ', 1)[-1]


def text_of(test):
    return (test.get('stdout') or '') + (test.get('stderr') or '')


def marks_of(test):
    """Returns (mark, case) of each line in which a test program reports on a case: RUN, OK, FAILED,
    SKIPPED."""
    return [(mark.strip(), case) for part in ('stdout', 'stderr') for mark, case in CASE.findall(test.get(part) or '')]


def has_failed(test):
    return test['result'] not in (*GOOD, 'SKIP')


def listed(test):
    """Returns the cases of a test program, whether they ran or not; nothing if the test is no such
    program."""
    program = next((word for word in test.get('command', []) if os.path.basename(word).startswith('test_')), None)
    return [] if program is None else subprocess.run([program, '--list'], capture_output=True, text=True).stdout.split()


def skips(test):
    """Returns [(what was skipped, why)] of one of Meson's tests: some of its cases, or all of it.
    """
    text = text_of(test)
    if test['result'] == 'SKIP':
        return [(short_name(test), ' '.join(WHY.findall(text)[-1:]) or 'it does not say why')]
    found, since = [], 0
    for match in CASE.finditer(text):
        if match.group(1).strip() == 'SKIPPED' and match.group(2) not in dict(found):
            found.append((match.group(2), ' '.join(WHY.findall(text[since:match.start()])[-1:]) or 'it does not say why'))
        since = match.end()
    return [(f'{short_name(test)}: {case}', why) for case, why in found]
