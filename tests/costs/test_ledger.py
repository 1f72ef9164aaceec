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


def a_figure_that_is_5_percent_worse_is_told_with_what_it_was_is_and_what_to_do():
    found, = _found(1000, 1050)
    for part in ('gate', '1050', '1000', '5.0% worse', 'instructions', 'tools/ledger --accept'):
        assert part in found, found


def a_figure_that_is_5_percent_better_asks_to_be_written_down():
    found, = _found(1000, 950)
    assert '5.0% better' in found and 'tools/ledger --accept' in found, found


def changes_up_to_3_percent_are_no_finding():
    assert not _found(1000, 1030) and not _found(1000, 970)
    assert _found(1000, 1031) and _found(1000, 969)


def a_slip_of_each_figure_is_told_with_its_name():
    was = {'gate': 200.0, 'key': 85.0}
    for name in was:
        found = list(book.findings(_figures(**was), {**was, name: was[name] * 1.05}, UNITS))
        assert len(found) == 1 and found[0].startswith(name + ':'), found


def a_figure_that_was_zero_may_not_become_anything_else():
    assert not _found(0, 0) and _found(0, 1)


def figures_that_are_new_or_gone_are_told():
    found = list(book.findings(_figures(gate=1), {'key': 2}, UNITS))
    assert len(found) == 2 and 'not in the ledger' in found[0] and 'no longer measured' in found[1], found


def what_is_accepted_is_what_counts_from_then_on():
    figures = book.accepted(_figures(gate=1000), {'gate': 1100}, '2026-02-02', 'signs its answers')
    assert figures == {'gate': {'is': 1100.0, 'history': [['2026-01-01', 1000, 'first'],
                                                          ['2026-02-02', 1100.0, 'signs its answers']]}}
    assert not list(book.findings(figures, {'gate': 1100}, UNITS))


def accepting_leaves_what_has_not_changed_as_it_was():
    figures = _figures(gate=1000, key=85)
    assert book.accepted(figures, {'gate': 1000.9, 'key': 85}, '2026-02-02', 'no reason') == figures


def small_slips_do_not_add_up_unseen_when_others_are_accepted():
    figures = _figures(gate=1000)
    for now in (1010, 1020, 1030):
        figures = book.accepted(figures, {'gate': now}, '2026-02-02', 'for another figure')
    assert list(book.findings(figures, {'gate': 1040}, UNITS)), figures


def history_stays_short():
    figures = _figures(gate=1)
    for step in range(20):
        figures = book.accepted(figures, {'gate': 2.0 ** step}, '2026-02-02', f'step {step}')
    assert len(figures['gate']['history']) == book.HISTORY_MAX
    assert figures['gate']['history'][-1] == ['2026-02-02', 2.0 ** 19, 'step 19']


def what_is_written_is_read_again_and_has_a_line_for_each_figure():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'ledger.json')
        assert book.read(path) == {}
        ledger = {'gcc 12': _figures(gate=207.5, key=85.13), 'clang 14': _figures(gate=190)}
        book.write(path, ledger)
        assert book.read(path) == ledger
        with open(path, encoding='utf-8') as file:
            assert sum('"is"' in line for line in file) == 3


def the_ledger_of_the_project_is_sound():
    with open(os.path.join(ROOT, 'bench', 'ledger.json'), encoding='utf-8') as file:
        ledger = json.load(file)
    assert ledger
    for figures in ledger.values():
        for name, figure in figures.items():
            assert figure['is'] == figure['history'][-1][1], name
            assert all(reason.strip() for _, _, reason in figure['history']), name


if __name__ == '__main__':
    cases.main()
