# SPDX-License-Identifier: MIT
"""The settings that may hold secrets, and the ways in which their lines can be wrong. Each value
contains CANARY."""
import glob
import os
import re

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'src')
CANARY = 'hunter2'
RULES = 'rules:\n  - name: r\n    key: token:authorization\n    limit: 5/h\n'

# A file for each setting of rules and admission, with the other lines around it. `{line}` stands at
# the place of the setting.
ADMISSION = {
    'secret': RULES + 'admission:\n  trusted: [unix]\n  {line}\n  ipv4_prefix: 32\n',
    'url': RULES + '    share: {overshoot: 1%}\nadmission:\n  store:\n    nodes: 2\n    {line}\n    prefix: w\n',
    'value': RULES + '    match:\n      header:\n        - name: x-plan\n          {line}\n',
    'keys': RULES + '    plans:\n      - name: gold\n        limit: 9/h\n        {line}\n',
    'allow_keys': RULES.replace('token:authorization', 'ip') + '    {line}\n    cost: 1\n',
    'deny_keys': RULES + '    {line}\n    cost: 1\n',
}


def _read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def options():
    """Returns (section, name) of every option of a command that is marked as a secret."""
    found = set()
    for path in glob.glob(f'{SOURCE}/cli/*/*.c'):
        section = os.path.basename(os.path.dirname(path))
        for entry in re.findall(r'\{"([a-z-]+)",([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}', _read(path)):
            if '.is_secret = true' in entry[1]:
                found.add((section, entry[0]))
    return sorted(found)


def fields():
    """Returns every key of rules and admission that is marked as a secret."""
    text = _read(f'{SOURCE}/serve/rules/rules_settings.c')
    return {name for name, entry in re.findall(r'\{"([a-z_]+)",(.*?)\},\n', text, re.S) if '.is_secret = true' in entry or '&listed_item' in entry}


def values(name):
    """Returns plain texts for the value of a secret; each is invalid for some settings. The name of
    a state file is not a secret."""
    return [value for value in _values() if name != 'state' or '://' in value or '@' in value]


def _values():
    c = CANARY
    return [c, 'x' * 30 + c, c * 40, c * 400, f'{c}\x01', f'\x7f{c}', f'{c}\u00e9', f' {c}', f'{c}: {c}', f'Bad Name: {c}', f'X: {c}\r\nY: {c}', f'{c}://{c}',
            f'ftp://me:{c}@127.0.0.1', f'http://me:{c}@127.0.0.1:1/path', f'http://me:{c}@127.0.0.1:99999', f'http://me:{c}@', f'http://{c}@127.0.0.1:x',
            f'http://me:%zz{c}@127.0.0.1:1', f'//me:{c}@127.0.0.1', f'me:{c}@127.0.0.1', f'redis:{c}', f'redis://{c}@127.0.0.1', f'redis://me:{c}@127.0.0.1:x',
            f'redis://:{c}@127.0.0.1/7', f'redis://:{c}%zz@127.0.0.1', f'rediss://:{c}@127.0.0.1', f'unix:{c}', f'mysql://me:{c}@127.0.0.1/db',
            f'postgres://me:{c}/x@127.0.0.1:1/db', f'postgres://me:{c}@127.0.0.1:x/db', f'postgres://me:{c}@127.0.0.1:1/db?{c}=1',
            f'postgres:///db?host=127.0.0.1&port=1&password={c}&x', f'Bearer {c} {c}', f'{c}/33', f'{c}*{c}*{c}*{c}*{c}*{c}*{c}*{c}*{c}*{c}', f'{c},{c}']


def _quoted(text):
    return '"' + ''.join(c if ' ' <= c <= '~' and c not in '"\\' else f'\\u{ord(c):04x}' for c in text) + '"'


def lines(key, pad):
    """Yields YAML lines for the key with every kind of YAML mistake; `pad` is the text before the
    key."""
    c, more = CANARY, '\n' + pad
    for value in values(key):
        yield f'{key}: {_quoted(value)}'.encode()
        yield f'{key}: [{_quoted(value)}]'.encode()
    for value in (f'[{c}, {c}]', f'[[{c}]]', f'[{{{c}: {c}}}]', f'{{{c}: {c}}}', f'{{{c}}}', f'[{c}', f'{{{c}', f']{c}', f'}}{c}', f'"{c}', f"'{c}", f'"{c}" {c}',
                  f'"\\q{c}"', f'"\\x{c}"', f'"\\ud800{c}"', f'&{c} {c}', f'*{c}', f'!{c} {c}', f'!!{c} {c}', f'!{c}!a {c}', f'!<{c} {c}', f'@{c}', f'`{c}', f'%{c}',
                  f'|{c}', f'>{c}', f'|9\n {c}', f'- {c}', f'? {c}', f': {c}', f'{c}: {c}', f'{c} #{c}: {c}', f'\t{c}', f'{c}\t{c}', f'{c}\n{c}', f'{c}\n{c}: {c}',
                  f'{c}\n---\n{c}', f'{c}\n...\n%{c}', '[' + f'{c}, ' * 70 + ']', f'{c}{more}  {c}: {c}', f'{c}{more}- {c}', f'{c}{more}{c}', f'{c}{more}unknown: 1',
                  f'{c}{more}{key}: {c}', f'"{c}"{more}{key}: "{c}\u0001"', f'~{more}{key}: {c}', f'null{more}{key}{c}'):
        yield f'{key}: {value}'.encode()
    for line in (f'{key}:{c}', f'{key}={c}', f'{key} {c}', f'{key}{key[-1]}: {c}', f'{key[:-1]}: {c}', f'{key.upper()}: {c}', f'{key}-{key}: {c}', f'"{key}:{c}": 1',
                 f'{key}:{c}: {c}', f'? {key}{more}: - {c}', f'{key} : &{c}', f'"{key}={c}": {c}'):
        yield line.encode()
    for raw in (b'\xff', b'\xc3', b'\xed\xa0\x80', b'\x00', b'\x80'):
        yield f'{key}: {c}'.encode() + raw
        yield f'{key}: "'.encode() + raw + f'{c}"'.encode()
    yield f'{key}: {c}'.encode('utf-16')
