# SPDX-License-Identifier: MIT
"""Prints results as a table and a summary. A result has the counts of judge.judge(), with setup,
client and phase."""
import statistics

WIDTH = 26


def name_of(result):
    return f'{result["client"]} {result["phase"]}'.strip()


def cell(result):
    """Returns the goodput of the second half / refused requests of the whole run, and offences and
    bans if there are any."""
    if result is None:
        return '-'
    if 'half' not in result:
        return 'failed'
    text = f'{result["half"]["goodput"]:.1f} / {result["whole"]["refused_part"]:.2f}'
    if result['offences']:
        text += f' {result["offences"]} off.'
    if result['bans']:
        text += f' {result["bans"]} b.'
    return text + (' !' if 'error' in result else '')


def columns(results):
    return list(dict.fromkeys(name_of(each) for each in results))


def table(results):
    """Yields the lines of the table: a row for each setup, a column for each client and phase."""
    names = columns(results)
    found = {(each['setup'], name_of(each)): each for each in results}
    yield 'last half of the run in % of what is allowed / refused and lost in % of what was sent (whole run); off.: offences; b.: bans'
    yield f'{"":28}' + ''.join(f'{name:>{WIDTH}}' for name in names)
    for setup in dict.fromkeys(each['setup'] for each in results):
        yield f'{setup:28}' + ''.join(f'{cell(found.get((setup, name))):>{WIDTH}}' for name in names)


def summary_of(results):
    """Returns the numbers over all setups; goodput counts as 100 at most."""
    judged = [each for each in results if 'half' in each and 'error' not in each]
    if not judged:
        return None
    goodputs = [min(100, each['half']['goodput']) for each in judged]
    wholes = [min(100, each['whole']['goodput']) for each in judged]
    refused = [each['half']['refused_part'] for each in judged]
    return {'setups': len(judged), 'mean': statistics.mean(goodputs), 'median': statistics.median(goodputs), 'least': min(goodputs),
            'reach_97': sum(each >= 97 for each in goodputs), 'whole_mean': statistics.mean(wholes),
            'refused_mean': statistics.mean(refused), 'refused_most': max(refused),
            'whole_refused_mean': statistics.mean(each['whole']['refused_part'] for each in judged),
            'offences': sum(each['offences'] for each in judged), 'bans_most': max(each['bans'] for each in judged),
            'late_ms': statistics.median(each['late_ms'] for each in judged)}


ROWS = [('setups', 'setups', 0), ('goodput, last half: mean', 'mean', 1), ('  median', 'median', 1), ('  least', 'least', 1),
        ('  setups with 97 or more', 'reach_97', 0), ('goodput, whole run: mean', 'whole_mean', 1),
        ('refused, last half: mean', 'refused_mean', 2), ('  most', 'refused_most', 2), ('refused, whole run: mean', 'whole_refused_mean', 2),
        ('offences', 'offences', 0), ('bans, most in a setup', 'bans_most', 0),
        ('machine late by, ms', 'late_ms', 1)]


def summary(results):
    """Returns {column: numbers}."""
    return {name: summary_of([each for each in results if name_of(each) == name]) for name in columns(results)}


def summary_lines(results):
    numbers = {name: values for name, values in summary(results).items() if values}
    yield f'{"":28}' + ''.join(f'{name:>{WIDTH}}' for name in numbers)
    for title, key, digits in ROWS:
        yield f'{title:28}' + ''.join(f'{values[key]:{WIDTH}.{digits}f}' for values in numbers.values())


def errors(results):
    for each in results:
        if 'error' in each:
            yield f'{each["setup"]}, {name_of(each)}: {each["error"]}'
