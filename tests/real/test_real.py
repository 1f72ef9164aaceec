#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`weir fetch` against twelve real limiters, for a minute each and all at once, with bounds that
also hold on a busy machine.

usage: test_real.py WEIR
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'cli'))
import cases  # noqa: E402

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'bench', 'real', 'run')
SECONDS = 60
SETUPS = 12
MOST_REFUSED = 20     # % of the requests sent
FEW = 10              # refusals; probing costs that many at low rates
LATE_MS = 10          # a machine that wakes processes later than this is busy
LEAST, LEAST_IF_BUSY = 50, 15  # % of the allowed requests


def _problems(result):
    whole, late_ms = result['whole'], result['late_ms']
    if 'error' in result:
        yield result['error']
    if result['offences']:
        yield f'{result["offences"]} requests were sent inside a window that the server had named: {result["examples"]}'
    if whole['refused_part'] > MOST_REFUSED and whole['refused'] + whole['lost'] > FEW:
        yield f'{whole["refused_part"]:.1f} % of what was sent were refused'
    least = LEAST if late_ms <= LATE_MS else LEAST_IF_BUSY
    if whole['goodput'] < least:
        yield f'{whole["goodput"]:.1f} % of what is allowed, and {least} are the least on a machine that is late by {late_ms:.1f} ms'


def weir_uses_the_rate_of_real_limiters_with_few_refusals():
    with tempfile.TemporaryDirectory(prefix='weir-test-real-') as folder:
        subprocess.run([sys.executable, '-B', RUN, sys.argv[1], '--build', folder, '--short', '--seconds', str(SECONDS), '--phases', 'cold'],
                       check=True, timeout=280)
        with open(f'{folder}/results/results.json', encoding='utf-8') as file:
            results = json.load(file)['results']
    assert len(results) == SETUPS, f'{len(results)} setups ran of {SETUPS}'
    found = [f'{each["setup"]}: {problem}' for each in results for problem in _problems(each)]
    assert not found, '\n'.join(found)


if __name__ == '__main__':
    cases.main()
