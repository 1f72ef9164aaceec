# SPDX-License-Identifier: MIT
"""One-line mutants of C code, by rule: the faults that tools/mutate puts into a file.

The code must be formatted as `make format` does: the braces of functions stand alone at the left
margin, and binary operators have spaces around them.
"""
import re
from collections import namedtuple

# Replaces text[start:end] by `new`, without changing the number of lines. `first` is the first line
# of the function's body.
Fault = namedtuple('Fault', 'path function first line start end new rule')

HIDDEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.S | re.M)
BODY = re.compile(r'^(?P<head>[A-Za-z_][^;{}#]*?\)[^;{}=]*)\n\{\n(?P<body>.*?)^\}', re.S | re.M)
SPARED_CALLS = re.compile(r'\b(?:assert|static_assert|_Static_assert)\s*$')
WORD = re.compile(r'[A-Za-z_]\w*')
DECLARATION = re.compile(r'(?:(?:static|const|volatile|struct|enum|union|unsigned|signed|long|short)\s+)*[A-Za-z_]\w*\s+[*\s]*(?:const\s+)?'
                         r'[A-Za-z_]\w*\s*(?:\[|=|;|,|$)')
ASSIGNMENT = re.compile(r'[^=!<>]*?(?:[-+*/%&|^]|<<|>>)?=(?!=)')
STEP = re.compile(r'(?:\+\+|--)|.*(?:\+\+|--)$', re.S)
CALL = re.compile(r'(?:\(void\)\s*)?[A-Za-z_][\w.]*(?:->[\w.]+|\[[^\]]*\])*\s*\(.*\)$', re.S)
PLAIN_INT = re.compile(r'(?<![\w.])(0x[0-9a-fA-F]+|\d+)([uUlL]*)(?![\w.])')
PLAIN_REAL = re.compile(r'(?<![\w.])(?:\d+\.\d+(?:e[-+]?\d+)?|\d+e[-+]?\d+)(?![\w.])')

OPERATORS = [
    # (the operator with the spaces around it, its replacements, and the rule)
    (re.compile(r'(?<= )<(?=[ \n])'), ('<=', '>='), 'comparison'),
    (re.compile(r'(?<= )>(?=[ \n])'), ('>=', '<='), 'comparison'),
    (re.compile(r'(?<= )<=(?=[ \n])'), ('<', '>'), 'comparison'),
    (re.compile(r'(?<= )>=(?=[ \n])'), ('>', '<'), 'comparison'),
    (re.compile(r'(?<= )==(?=[ \n])'), ('!=',), 'comparison'),
    (re.compile(r'(?<= )!=(?=[ \n])'), ('==',), 'comparison'),
    (re.compile(r'(?<= )&&(?=[ \n])'), ('||',), 'and-or'),
    (re.compile(r'(?<= )\|\|(?=[ \n])'), ('&&',), 'and-or'),
    (re.compile(r'(?<= )\+(?=[ \n])'), ('-',), 'arithmetic'),
    (re.compile(r'(?<= )-(?=[ \n])'), ('+',), 'arithmetic'),
    (re.compile(r'(?<= )\*(?=[ \n])'), ('/',), 'arithmetic'),
    (re.compile(r'(?<= )/(?=[ \n])'), ('*',), 'arithmetic'),
    (re.compile(r'(?<= )<<(?=[ \n])'), ('>>',), 'arithmetic'),
    (re.compile(r'(?<= )>>(?=[ \n])'), ('<<',), 'arithmetic'),
    (re.compile(r'(?<= )\+=(?=[ \n])'), ('-=',), 'arithmetic'),
    (re.compile(r'(?<= )-=(?=[ \n])'), ('+=',), 'arithmetic'),
    (re.compile(r'(?<= )\?(?=[ \n])'), ('&& 0 ?', '|| 1 ?'), 'branch'),
    (re.compile(r'(?<![\w)\]])!(?=[\w(*])'), ('',), 'branch'),
]


def masked(text):
    """Blanks comments, strings, characters and preprocessor lines; every other byte keeps its
    position."""
    def blank(match):
        text = match.group(0)
        if text[0] in '"\'':
            return text[0] + re.sub(r'[^\n]', 'x', text[1:-1]) + text[-1]
        return re.sub(r'[^\n]', ' ', text)
    return HIDDEN.sub(blank, text)


def past(text, at):
    """Returns the position after the bracket that closes the one at `at`."""
    depth = 0
    for here in range(at, len(text)):
        if text[here] in '([{':
            depth += 1
        elif text[here] in ')]}':
            depth -= 1
            if depth == 0:
                return here + 1
    return len(text)


def until(text, at, end, stop):
    """Returns the position of `stop` outside of brackets, from `at` on; `end` if there is none."""
    while at < end:
        if text[at] in '([{':
            at = past(text, at)
            continue
        if text[at] == stop:
            return at
        at += 1
    return end


def skip_space(text, at, end):
    while at < end and text[at].isspace():
        at += 1
    return at


class Function:
    """Finds the mutants of one function."""

    def __init__(self, path, text, mask, match):
        self.path, self.text, self.mask = path, text, mask
        head = match.group('head')
        words = WORD.findall(head[:head.index('(')])
        self.name = words[-1] if words else '?'
        returned = head[:head.index('(')].rsplit(self.name, 1)[0]
        self.pointer, self.words = '*' in returned, words[:-1]
        self.start, self.end = match.start('body'), match.end('body')
        self.first = text.count('\n', 0, self.start) + 1
        self.spared = []  # ranges without mutants: asserts, sizes of arrays
        self.faults = []

    def add(self, start, end, new, rule):
        if any(a <= start < b for a, b in self.spared):
            return
        line = self.text.count('\n', 0, start) + 1
        new += '\n' * (self.text.count('\n', start, end) - new.count('\n'))
        if self.text[start:end] != new:
            self.faults.append(Fault(self.path, self.name, self.first, line, start, end, new, rule))

    def find(self):
        for match in re.finditer(r'\b(?:assert|static_assert)\(', self.mask[self.start:self.end]):
            at = self.start + match.start()
            self.spared.append((at, past(self.mask, self.start + match.end() - 1)))
        self.statements()
        self.operators()
        self.constants()
        self.arguments()
        return self.faults

    def statements(self):
        at = self.start
        while at < self.end:
            at = self.statement(skip_space(self.mask, at, self.end))

    def statement(self, at):
        """Finds mutants in the statement at `at`, and returns the position of the next statement.
        """
        if at >= self.end or self.mask[at] in '{};':
            return at + 1
        word = WORD.match(self.mask, at)
        word = word.group(0) if word else ''
        if word in ('if', 'while', 'for', 'switch'):
            return self.condition(word, at)
        if word in ('else', 'do'):
            if word == 'else':
                self.add(at, at + 4, 'if (0)', 'branch')
            return at + len(word)
        if word in ('case', 'default') or re.match(r'[a-z_]\w*:(?!:)', self.mask[at:self.end]):
            return until(self.mask, at, self.end, ':') + 1
        end = until(self.mask, at, self.end, ';')
        self.simple(word, at, end)
        return end + 1

    def condition(self, word, at):
        opens = self.mask.index('(', at)
        closes = past(self.mask, opens)
        inside = self.text[opens + 1:closes - 1]
        if word == 'if':
            self.add(opens, closes, f'(!({inside}))', 'branch')
            self.add(opens, closes, f'(0 && ({inside}))', 'branch')
        elif word == 'while':
            self.add(opens, closes, f'(0 && ({inside}))', 'branch')
        return closes

    def simple(self, word, at, end):
        text = self.mask[at:end]
        if word == 'return':
            self.returned(at, end)
        elif word in ('break', 'continue', 'goto', 'typedef', 'static'):
            pass
        elif DECLARATION.match(text):
            for match in re.finditer(r'\[[^\]]*\]', text.split('=')[0]):
                self.spared.append((at + match.start(), at + match.end()))
        elif ASSIGNMENT.match(text) or STEP.match(text):
            self.add(at, end, '(void)0', 'assignment')
        elif CALL.match(text) and not SPARED_CALLS.match(text.split('(')[0]):
            self.add(at, end, '(void)0', 'call')

    def returned(self, at, end):
        first = skip_space(self.mask, at + len('return'), end)
        value = self.text[first:end]
        if not value:
            return
        if self.pointer:
            new = 'NULL' if value != 'NULL' else value
        elif 'bool' in self.words:
            new = {'true': 'false', 'false': 'true'}.get(value, f'!({value})')
        else:
            new = f'({value}) + 1'
        self.add(first, end, new, 'return')

    def operators(self):
        for pattern, news, rule in OPERATORS:
            for match in pattern.finditer(self.mask, self.start, self.end):
                for new in news:
                    self.add(match.start(), match.end(), new, rule)

    def constants(self):
        for match in PLAIN_INT.finditer(self.mask, self.start, self.end):
            number, suffix = int(match.group(1), 0 if match.group(1).startswith('0x') else 10), match.group(2)
            show = hex if match.group(1).startswith('0x') else str
            self.add(match.start(), match.end(), show(number + 1) + suffix, 'constant')
            if number > 0:
                self.add(match.start(), match.end(), show(number - 1) + suffix, 'constant')
        for match in PLAIN_REAL.finditer(self.mask, self.start, self.end):
            self.add(match.start(), match.end(), f'({match.group(0)} + 1)', 'constant')

    def arguments(self):
        for match in re.finditer(r'\b([A-Za-z_]\w*)\(', self.mask[self.start:self.end]):
            if match.group(1) in ('if', 'for', 'while', 'switch', 'sizeof', 'return', 'defined'):
                continue
            opens = self.start + match.end() - 1
            closes = past(self.mask, opens) - 1
            parts, at = [], opens + 1
            while at < closes:
                comma = until(self.mask, at, closes, ',')
                first = skip_space(self.mask, at, comma)
                parts.append((first, comma))
                at = comma + 1
            for (a, b), (c, d) in zip(parts, parts[1:]):
                self.add(a, d, self.text[c:d] + self.text[b:c] + self.text[a:b], 'arguments')


def faults_of(path, text):
    """Returns all mutants of a file, in the order of their positions."""
    mask = masked(text)
    found = []
    for match in BODY.finditer(mask):
        found += Function(path, text, mask, match).find()
    return sorted(found, key=lambda fault: (fault.start, fault.end, fault.new))


def faulty(text, fault):
    return text[:fault.start] + fault.new + text[fault.end:]


def without_comments(lines):
    return ' '.join(re.sub(r'/\*.*?(\*/|$)', '', lines, flags=re.S).split())


def changed_lines(text, fault):
    """The lines that differ: (as they are, as they become), without indentation and comments."""
    first = text.rfind('\n', 0, fault.start) + 1
    last = text.find('\n', fault.end)
    old, new = text[first:last], faulty(text, fault)[first:last - len(text) or None]
    return without_comments(old), without_comments(new)
