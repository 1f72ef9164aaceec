#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Comments, messages, help texts, pages and the names of tests avoid the phrases of plain.txt. Prose ends at column 100.

The list is short: it catches the phrases that return most often, and a reviewer catches the others."""
import os
import re

import guard

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'plain.txt')

# Places where a phrase stays, and why: (path, text that contains it) -> reason.
ALLOWED = {
    ('tests/engine/test_strangers.c', '"nobody"'): 'it quotes a key of the test',
    ('tests/store/test_place.c', 'user nobody'): 'the name of a user',
}
FRAGMENT = 'a sentence that stands alone'  # asked of comments only: other texts may continue in the next string

C = re.compile(r'/\*(.*?)\*/|("(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*)|\'(?:\\.|[^\'\\\n])*\'', re.S)
JOINT = re.compile(r'"\s*"|^"|"$')
PYTHON = re.compile(r'"""(.*?)"""|(?:^|(?<=\s))#!?([^\n]*)$', re.S | re.M)
TEST = re.compile(r'^(?:static void|def) (\w+)\((?:void \*\*state)?\)', re.M)
CODE = re.compile(r'^```.*?^```|`[^`\n]*`|^    .*$|^\.(?:Bd|\\").*$', re.S | re.M)


def patterns():
    """[(compiled pattern, advice)]"""
    with open(LIST, encoding='utf-8') as file:
        lines = [line.rstrip('\n') for line in file]
    return [(re.compile(pattern), advice) for pattern, advice in
            (re.split(r'  +', line, maxsplit=1) for line in lines if line and not line.startswith('#'))]


def flat(text):
    """A comment or paragraph as one line."""
    return ' '.join(re.sub(r'^\s*(?:\*|#)? ?', '', line).strip() for line in text.split('\n')).strip()


def texts_of_c(text):
    for match in C.finditer(text):
        comment, string = match.group(1), match.group(2)
        if comment is not None:
            yield match.start(), flat(comment), True
        elif string is not None and string.count(' ') > 1:
            for line in JOINT.sub('', string).split('\\n'):
                yield match.start(), line, False


def texts_of_page(text):
    text = CODE.sub(lambda match: re.sub(r'[^\n]', ' ', match.group(0)), text)
    for match in re.finditer(r'(?:^.*\S.*\n?)+', text, re.M):
        yield match.start(), flat(match.group(0)), False


def texts_of_python(text):
    for match in PYTHON.finditer(text):
        yield match.start(), flat(match.group(1) or match.group(2) or ''), False


def texts_of(path, text):
    """(offset, text, is it a comment?) of what a person reads of a file."""
    if path.endswith(('.c', '.h')):
        yield from texts_of_c(text)
    elif path.endswith('.py'):
        yield from texts_of_python(text)
    else:
        yield from texts_of_page(text)
    if path.startswith('tests/') and path.endswith(('.c', '.py')):
        for match in TEST.finditer(text):
            yield match.start(), match.group(1).replace('_', ' '), False


WIDTH = 100
PROSE_OF_C = re.compile(r'^ *(?:/\*| \*) \S')
NO_PROSE = re.compile(r'[|!<>#\[]|    ')


def wide_lines(path, text):
    """Numbers of the lines of prose that pass the last column: not of code, tables, drawings, pictures and links."""
    fenced = False
    for number, line in enumerate(text.split('\n'), 1):
        fenced ^= line.lstrip().startswith('```')
        if len(line) > WIDTH and (PROSE_OF_C.match(line) if path.endswith(('.c', '.h')) else
                                  path.endswith('.md') and not fenced and not NO_PROSE.match(line)):
            yield number


def findings(root, _build):
    listed = patterns()
    for path in guard.tracked(root, '.c', '.h', '.py', '.md', '.1', '.3', '.5'):
        text = guard.read(root, path)
        for number in wide_lines(path, text):
            yield f'{path}:{number}: passes column {WIDTH}'
        for at, words, is_comment in texts_of(path, text):
            if any(path == where and part in words for where, part in ALLOWED):
                continue
            for pattern, advice in listed:
                hit = pattern.search(words)
                if hit and (is_comment or advice != FRAGMENT):
                    around = words[max(0, hit.start() - 20):hit.end() + 30]
                    yield f'{path}:{text.count(chr(10), 0, at) + 1}: "…{around}…"; better: {advice}'


BAD = {
    'a comment that names no actor': {'src/base/x.c': '/* Whoever asks is told. */\n'},
    'a fragment': {'src/base/x.h': 'int x; /* of the second kind */\n'},
    'a message': {'src/base/x.c': 'const char *x = "all arguments but for the first";\n'},
    'a page': {'docs/x.md': '# Title\n\nThere is a limit,\nand if there is none, it is none.\n'},
    'a man page': {'man/x.1': '.Sh NAME\nNobody knows.\n'},
    'the name of a test': {'tests/unit/test_x.c': 'static void somebody_is_late(void **state)\n{\n}\n'},
    'a comment that is too wide': {'src/base/x.c': f'/* {"word " * 20}word. */\n'},
    'a paragraph that is too wide': {'docs/x.md': f'A {"word " * 20}\n'},
    'a comment in Python': {'tests/x.py': '# The caller lets go.\n'},
}
GOOD = {'src/base/x.c': '/* The caller holds the lock. Returns false if the queue is empty. */\nint x; /* in bytes */\n',
        'docs/x.md': f'A page.\n\n```\nwho is there {"x" * 100}\n```\n\n| {"x" * 100} |\n\nUse `nobody` as the user.\n',
        'tests/x.py': '"""What the tests of x share."""\nX = "who is this"\n'}

if __name__ == '__main__':
    guard.main(findings, BAD, GOOD)
