#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No tracked file names a path of the machine on which it was written."""
import guard

# Assembled from parts; otherwise this file would be the first finding.
PLACES = ['..' + '/shared', '/' + 'work/']


def findings(root, _build):
    for path in guard.tracked(root):
        for number, line in enumerate(guard.read(root, path).split('\n'), 1):
            for place in PLACES:
                if place in line:
                    yield f'{path}:{number}: mentions {place}'


BAD = {f'{place} in a file': {'docs/x.md': f'see {place}x\n'} for place in PLACES}
GOOD = {'docs/x.md': 'a framework/library, shared\n'}

if __name__ == '__main__':
    guard.main(findings, BAD, GOOD)
