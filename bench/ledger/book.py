# SPDX-License-Identifier: MIT
"""bench/ledger.json: the costs of weir, on each machine whose figures were accepted.

Figures are counts, less is better. A machine is everything that they depend on: processor features,
compiler, C library. A figure is {"is": NUMBER, "history": [[DATE, NUMBER, REASON], …]}, the latest
entry last.
"""
import json

BOUND = 0.03  # a change beyond this is a finding
HISTORY_MAX = 6

ACCEPT = 'tools/ledger --accept "REASON"'


def read(path):
    try:
        with open(path, encoding='utf-8') as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def write(path, book):
    """Writes one line for each figure, so that a change of one figure is a change of one line."""
    machines = []
    for machine, figures in sorted(book.items()):
        lines = [f'    {json.dumps(name)}: {json.dumps(figure, ensure_ascii=False)}' for name, figure in figures.items()]
        machines.append(f'  {json.dumps(machine)}: {{\n' + ',\n'.join(lines) + '\n  }')
    with open(path, 'w', encoding='utf-8') as file:
        file.write('{\n' + ',\n'.join(machines) + '\n}\n')


def _change(was, now):
    return (now - was) / was if was else float(now != was)


def _compared(name, unit, was, now):
    """Returns a finding, or None."""
    change = _change(was, now)
    if abs(change) <= BOUND:
        return None
    told = f'{name}: {now:.6g} {unit}, was {was:.6g}: {abs(change):.1%} '
    if change > 0:
        return told + f'worse. Find what costs more and mend it; if it is worth its price: {ACCEPT}'
    return told + f'better. Write it down, so that it cannot get lost unseen: {ACCEPT}'


def findings(figures, now, units):
    """Yields one line for each figure that differs from the ledger. `figures` are those of this
    machine."""
    for name in now:
        if name not in figures:
            yield f'{name}: {now[name]:.6g} {units[name]}, and not in the ledger: {ACCEPT}'
        else:
            found = _compared(name, units[name], figures[name]['is'], now[name])
            if found:
                yield found
    for name in figures:
        if name not in now:
            yield f'{name}: in the ledger, but no longer measured: {ACCEPT}'


def accepted(figures, now, date, reason):
    """Returns the figures of a machine after `now` was accepted. A figure without a finding keeps
    its entry, so that small changes add up to a finding even if other figures are accepted
    meanwhile."""
    result = {}
    for name, value in now.items():
        value = float(f'{value:.6g}')
        old = figures.get(name)
        if old is not None and abs(_change(old['is'], value)) <= BOUND:
            result[name] = old
            continue
        history = (old['history'] if old else []) + [[date, value, reason]]
        result[name] = {'is': value, 'history': history[-HISTORY_MAX:]}
    return result
