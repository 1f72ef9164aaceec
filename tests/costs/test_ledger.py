#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The ledger of costs: which changes it reports, and how figures are stored. Nothing is measured
here."""
import json
import os
import sys
import tempfile

ROOT = sys.argv[1] if sys.argv[1:] != ['--list'] else os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
sys.path[:0] = [os.path.join(ROOT, 'tests', 'cli'), os.path.join(ROOT, 'bench', 'ledger')]

import book  # noqa: E402
import cases  # noqa: E402

UNITS = {'gate': 'instructions', 'key': 'bytes'}


def _figures(**values):
    return {name: {'is': value, 'history': [['2026-01-01', value, 'first']]} for name, value in values.items()}


def _found(was, now):
    return list(book.findings(_figures(gate=was), {'gate': now}, UNITS))


def figure_5_percent_worse_is_reported_with_old_and_new_value():
    found, = _found(1000, 1050)
    for part in ('gate', '1050', '1000', '5.0% worse', 'instructions', 'tools/ledger --accept'):
        assert part in found, found


def figure_5_percent_better_asks_to_be_accepted():
    found, = _found(1000, 950)
    assert '5.0% better' in found and 'tools/ledger --accept' in found, found


def changes_up_to_3_percent_are_not_reported():
    assert not _found(1000, 1030) and not _found(1000, 970)
    assert _found(1000, 1031) and _found(1000, 969)


def worse_figure_is_reported_by_its_name():
    was = {'gate': 200.0, 'key': 85.0}
    for name in was:
        found = list(book.findings(_figures(**was), {**was, name: was[name] * 1.05}, UNITS))
        assert len(found) == 1 and found[0].startswith(name + ':'), found


def figure_of_zero_must_stay_zero():
    assert not _found(0, 0) and _found(0, 1)


def new_and_missing_figures_are_reported():
    found = list(book.findings(_figures(gate=1), {'key': 2}, UNITS))
    assert len(found) == 2 and 'not in the ledger' in found[0] and 'no longer measured' in found[1], found


def accepted_value_is_the_new_reference():
    figures = book.accepted(_figures(gate=1000), {'gate': 1100}, '2026-02-02', 'signs its answers')
    assert figures == {'gate': {'is': 1100.0, 'history': [['2026-01-01', 1000, 'first'],
                                                          ['2026-02-02', 1100.0, 'signs its answers']]}}
    assert not list(book.findings(figures, {'gate': 1100}, UNITS))


def accepting_keeps_unchanged_figures():
    figures = _figures(gate=1000, key=85)
    assert book.accepted(figures, {'gate': 1000.9, 'key': 85}, '2026-02-02', 'no reason') == figures


def small_changes_add_up_to_a_finding_when_others_are_accepted():
    figures = _figures(gate=1000)
    for now in (1010, 1020, 1030):
        figures = book.accepted(figures, {'gate': now}, '2026-02-02', 'for another figure')
    assert list(book.findings(figures, {'gate': 1040}, UNITS)), figures


def history_of_a_figure_has_a_maximum_length():
    figures = _figures(gate=1)
    for step in range(20):
        figures = book.accepted(figures, {'gate': 2.0 ** step}, '2026-02-02', f'step {step}')
    assert len(figures['gate']['history']) == book.HISTORY_MAX
    assert figures['gate']['history'][-1] == ['2026-02-02', 2.0 ** 19, 'step 19']


def cost_ledger_is_read_back_with_one_line_for_each_figure():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'ledger.json')
        assert book.read(path) == {}
        ledger = {'gcc 12': _figures(gate=207.5, key=85.13), 'clang 14': _figures(gate=190)}
        book.write(path, ledger)
        assert book.read(path) == ledger
        with open(path, encoding='utf-8') as file:
            assert sum('"is"' in line for line in file) == 3


def cost_ledger_of_the_project_is_valid():
    with open(os.path.join(ROOT, 'bench', 'ledger.json'), encoding='utf-8') as file:
        ledger = json.load(file)
    assert ledger
    for figures in ledger.values():
        for name, figure in figures.items():
            assert figure['is'] == figure['history'][-1][1], name
            assert all(reason.strip() for _, _, reason in figure['history']), name


if __name__ == '__main__':
    cases.main()
