#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/steady counts correctly and loads the machine in every second run, and tools/skipped lists
the tests that did not run."""
import json
import os
import re
import subprocess
import sys
import tempfile

import guard

RUN, OK, FAILED, SKIPPED = (f'[{mark}] {{0}}\n' for mark in (' RUN      ', '       OK ', '  FAILED  ', '  SKIPPED '))


def test_of(name, result, text=''):
    return {'name': f'weir:suite / {name}', 'result': result, 'stdout': text, 'duration': 1.0, 'command': ['test']}


GOOD = test_of('p', 'OK', RUN.format('x') + OK.format('x'))
BAD = test_of('p', 'FAIL', RUN.format('x') + FAILED.format('x') + RUN.format('y') + OK.format('y'))
CRASH = test_of('p', 'FAIL', RUN.format('x') + OK.format('x') + RUN.format('y'))
OTHER = test_of('q', 'TIMEOUT')
# Records how it was called, and writes the log of a run.
MAKE = '''#!/bin/sh
run=$(($(cat "$HERE/count" 2>/dev/null || echo 0) + 1))
echo $run >"$HERE/count"
tries=0
while [ "$(nice)" -gt "$NICENESS" ] && ! [ -e "$HERE/loaded" ] && [ $tries -lt 500 ]; do
    tries=$((tries + 1)); sleep 0.02
done
[ -e "$HERE/loaded" ] && load=load || load=rest
echo "$load $(nice) $*" >>"$HERE/calls"
mkdir -p "$HERE/b/meson-logs"
cp "$HERE/run$run" "$HERE/b/meson-logs/testlog.json" 2>/dev/null || exit 2
grep -q '"FAIL\\|"TIMEOUT' "$HERE/run$run" && exit 2
exit 0
'''
STRESS = '#!/bin/sh\ntrap \'rm -f "$HERE/loaded"; exit 0\' TERM\ntouch "$HERE/loaded"\nwhile :; do sleep 0.02; done\n'


def steady(root, folder, runs, *words):
    """Runs tools/steady and returns (exit status, output lines without times, calls of make)."""
    guard.write_tree(folder, {'bin/make': MAKE, 'bin/stress-ng': STRESS})
    for number, tests in enumerate(runs, 1):
        if tests is not None:
            guard.write_tree(folder, {f'run{number}': '\n'.join(json.dumps(test) for test in tests) + '\n'})
    for name in 'make', 'stress-ng':
        os.chmod(f'{folder}/bin/{name}', 0o755)
    run = subprocess.run([sys.executable, os.path.join(root, 'tools', 'steady'), str(len(runs)), f'B={folder}/b', *words],
                         capture_output=True, text=True, timeout=120,
                         env={**os.environ, 'HERE': folder, 'NICENESS': str(os.nice(0)), 'PATH': f'{folder}/bin:{os.environ["PATH"]}'})
    assert run.stderr == '', run.stderr
    lines = [re.sub(r': \d+ s,', ':', line) for line in run.stdout.splitlines()]
    return run.returncode, lines, guard.read(folder, 'calls').splitlines()


def steady_exits_with_0_and_loads_every_second_run(root, folder):
    status, lines, calls = steady(root, folder, [[GOOD]] * 4)
    assert status == 0 and lines == ['run 1 of 4, at rest: 1 passed, 0 failed', 'run 2 of 4, under load: 1 passed, 0 failed',
                                     'run 3 of 4, at rest: 1 passed, 0 failed', 'run 4 of 4, under load: 1 passed, 0 failed'], lines
    niceness = os.nice(0)
    assert [int(call.split()[1]) > niceness for call in calls] == [False, True, False, True], calls
    assert [call.split()[0] for call in calls] == ['rest', 'load', 'rest', 'load'], calls
    assert not os.path.exists(f'{folder}/loaded')


def steady_continues_after_a_failure_and_counts_it(root, folder):
    status, lines, _ = steady(root, folder, [[GOOD, OTHER], [BAD], [CRASH], [BAD]])
    assert status == 1 and lines[:4] == ['run 1 of 4, at rest: 1 passed, 1 failed', 'run 2 of 4, under load: 0 passed, 1 failed',
                                         'run 3 of 4, at rest: 0 passed, 1 failed', 'run 4 of 4, under load: 0 passed, 1 failed'], lines
    assert lines[4:7] == ['failed 2 of 4 times: p: x', 'failed 1 of 4 times: p: y', 'failed 1 of 4 times: q'], lines
    kept = sorted(os.listdir(f'{folder}/b/steady'))
    assert kept == ['1-q.txt', '2-p.txt', '3-p.txt', '4-p.txt'] and 'FAILED' in guard.read(folder, 'b/steady/2-p.txt'), kept


def steady_fails_if_a_run_has_no_test(root, folder):
    status, lines, _ = steady(root, folder, [[GOOD], None, [GOOD]])
    assert status == 1 and 'ran no test' in lines[1] and len(lines) == 3, lines


def steady_passes_arguments_on_to_meson_test(root, folder):
    _, _, calls = steady(root, folder, [[GOOD]] * 2, 'TESTS=one two')
    assert 'TESTS=one two' in calls[0] and calls[1].endswith(' one two'), calls


def skipped(root, folder, *tests):
    guard.write_tree(folder, {'b/meson-logs/testlog.json': '\n'.join(json.dumps(test) for test in tests) + '\n'})
    run = subprocess.run([sys.executable, os.path.join(root, 'tools', 'skipped'), f'{folder}/b'], capture_output=True, text=True)
    assert run.returncode == 0, run
    return run.stdout.splitlines()


def skipped_tests_are_listed_with_the_reason(root, folder):
    half = test_of('p', 'OK', RUN.format('x') + OK.format('x') + RUN.format('y') + 'skipped: only root can\n' + SKIPPED.format('y')
                   + '[  SKIPPED ] 1 test(s), listed below:\n' + SKIPPED.format('y'))
    mute = test_of('m', 'OK', RUN.format('x') + 'skipped: of x\n' + SKIPPED.format('x') + RUN.format('y') + SKIPPED.format('y'))
    whole = test_of('w', 'SKIP', 'skipped: there is no node\n')
    assert skipped(root, folder, GOOD, half, mute, whole) == [
        'skipped: p: y: only root can', 'skipped: m: x: of x', 'skipped: m: y: it does not say why', 'skipped: w: there is no node']


def absence_of_skipped_tests_is_reported(root, folder):
    assert skipped(root, folder, GOOD, BAD) == ['No test was skipped.']


CASES = (steady_exits_with_0_and_loads_every_second_run, steady_continues_after_a_failure_and_counts_it, steady_fails_if_a_run_has_no_test,
         steady_passes_arguments_on_to_meson_test, skipped_tests_are_listed_with_the_reason, absence_of_skipped_tests_is_reported)


def main(root):
    status = 0
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            try:
                case(root, folder)
            except AssertionError as failure:
                print(f'{case.__name__}: {failure}')
                status = 1
    sys.exit(status)


if __name__ == '__main__':
    main(sys.argv[1])
