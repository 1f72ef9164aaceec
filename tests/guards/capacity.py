#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The estimates for a large crawl in docs/guide/many-machines.md follow from the measurements in
the same file."""
import re

import guard

GUIDE = 'docs/guide/many-machines.md'
PAGES = 1e9
PAGE_BYTES = 50e3
DAY_S = 86400
NEAR = 0.05  # tolerance, because the figures are rounded


def _number(text):
    digits = re.sub(r'(?<=\d) (?=\d)', '', text)
    found = re.search(r'[\d.]+', digits)
    scale = 1e6 if ' MB' in text else 1
    return float(found.group()) * scale if found else None


def _rows(text, first):
    """Yields the cells of each line whose first cell matches `first`."""
    for line in text.split('\n'):
        if re.match(r'\| ' + first, line):
            yield [cell.strip() for cell in line.strip('| ').split(' | ')]


def _reckoned(text):
    """Yields (description, figure in the text, computed figure)."""
    cost = re.search(r'costs the crawlers some (\d+) µs and the database some (\d+) µs', text)
    weir_us, base_us = (float(figure) for figure in cost.groups())
    measured = list(_rows(text, r'(?:SQLite|PostgreSQL) \| \d'))
    for state, _, pages, us, *_ in measured:
        yield f'µs of a page, {state}', _number(us), 1e6 / _number(pages)
    shared = [row for row in measured if row[0] == 'PostgreSQL']
    yield 'µs of the crawlers', weir_us, sum(_number(row[3]) for row in shared) / len(shared)
    yield 'µs of the database', base_us, sum(_number(row[4]) for row in shared) / len(shared)
    for time, pages, weir, base, writes, amount, _ in _rows(text, r'\d+ days? \|'):
        rate = PAGES / (_number(time) * DAY_S)
        yield f'pages a second in {time}', _number(pages), rate
        yield f'processors of weir in {time}', _number(weir), rate * weir_us / 1e6
        yield f'processors of the database in {time}', _number(base), rate * base_us / 1e6
        yield f'writes a second in {time}', _number(writes), 2 * rate
        yield f'bytes a second in {time}', _number(amount), rate * PAGE_BYTES
    for name, each, total in _rows(text, '(?:rows of `tasks`|lines, with)'):
        yield f'GB of {name}', _number(total), _number(each) * PAGES / 1e9


def findings(root, _build):
    reckoned = list(_reckoned(guard.read(root, GUIDE)))
    if len(reckoned) < 10:
        yield f'{GUIDE}: its tables are not as this guard knows them'
    for what, said, right in reckoned:
        if said is None or abs(said - right) > NEAR * right:
            yield f'{GUIDE}: {what}: it says {said}, and that should be {right:.3g}'


GOOD = {GUIDE: '''
| PostgreSQL | 1 | 10 000 | 100 | 200 | 3 |
So a page costs the crawlers some 100 µs and the database some 200 µs of a processor.
| rows of `tasks` | 490 bytes with indexes | 490 GB |
| 1 day | 11 600 | 1.16 | 2.3 | 23 000 | 580 MB | 6 |
| 10 days | 1 160 | 0.116 | 0.23 | 2 300 | 58 MB | 6 |
'''}
BAD = {f'{old} told as {new}': {GUIDE: GOOD[GUIDE].replace(old, new)}
       for old, new in (('1.16 |', '1.3 |'), ('| 2.3 |', '| 2.0 |'), ('580 MB', '58 MB'), ('490 GB', '49 GB'), ('10 000', '15 000'),
                        ('23 000', '12 000'), ('| 10 days', '| 9 days'), ('| 1 day |', '| one day |'))}

if __name__ == '__main__':
    guard.main(findings, BAD, GOOD)
