#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The C code in README.md is part of an example that the tests compile and run."""
import re

import guard

BLOCK = re.compile(r'^```c\n(.*?)^```', re.M | re.S)


def findings(root, _build):
    examples = [guard.read(root, path) for path in guard.tracked(root, '.c') if path.startswith('examples/')]
    blocks = BLOCK.findall(guard.read(root, 'README.md'))
    if not blocks:
        yield 'README.md shows no C'
    for block in blocks:
        if not any(block in text for text in examples):
            first = block.strip().split('\n')[0]
            yield f'README.md: no file in examples/ holds the block that begins "{first}"'


EXAMPLE = {'examples/x.c': 'int x;\nint y;\n'}
BAD = {
    'C that is in no example': {**EXAMPLE, 'README.md': '```c\nint z;\n```\n'},
    'a README without C': {**EXAMPLE, 'README.md': 'words\n'},
}
GOOD = {**EXAMPLE, 'README.md': 'words\n\n```c\nint y;\n```\n'}

if __name__ == '__main__':
    guard.main(findings, BAD, GOOD)
