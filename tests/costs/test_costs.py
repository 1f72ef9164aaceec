#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The measured costs of weir agree with bench/ledger.json. (N1-6)

usage: test_costs.py ROOT BUILD
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT, BUILD = (sys.argv[1:] + ['', ''])[:2] if sys.argv[1:] != ['--list'] else (os.path.join(HERE, '..', '..'), '')
sys.path[:0] = [os.path.join(ROOT, 'tests', 'cli'), os.path.join(ROOT, 'bench', 'ledger')]

import book  # noqa: E402
import cases  # noqa: E402
import measure  # noqa: E402

SLIP = 1.05
KEY_BYTES_MAX = 90


def _measured():
    """Returns (figures of the ledger for this machine, counts, units). Ends the program with status
    77 (skipped) if there is nothing to compare."""
    try:
        measure.need_tools()
        machine = measure.machine(BUILD)
        figures = book.read(os.path.join(ROOT, 'bench', 'ledger.json')).get(machine)
        if figures is None:
            raise measure.Missing(f'bench/ledger.json has no figures of "{machine}"; tools/ledger --accept "REASON" adds them')
        return figures, *measure.figures(BUILD)
    except measure.Missing as why:
        print(f'skipped: {why}')
        sys.exit(77)


def no_figure_has_changed_by_more_than_3_percent():
    found = list(book.findings(FIGURES, COUNTS, UNITS))
    assert not found, '\n'.join(['', *found])


def change_of_5_percent_is_found_in_each_figure():
    for name, count in COUNTS.items():
        found = list(book.findings(FIGURES, {**COUNTS, name: max(count, FIGURES[name]['is']) * SLIP}, UNITS))
        assert any(line.startswith(f'{name}:') and 'worse' in line for line in found), name


def million_keys_of_24_bytes_take_at_most_90_bytes_each():
    assert COUNTS['bytes_per_key'] <= KEY_BYTES_MAX, COUNTS


if __name__ == '__main__':
    if sys.argv[1:] != ['--list']:
        FIGURES, COUNTS, UNITS = _measured()
    cases.main()
