# SPDX-License-Identifier: MIT
"""The numbers that occur in a test: in its name, its text, and the definitions of the same file
that it uses."""
import re

import guard

LETTERS = dict(zip('two three four five six seven eight nine ten eleven twelve'.split(), range(2, 13)))
LETTERS.update(fifteen=15, twenty=20, thirty=30, forty=40, fifty=50, sixty=60, hundred=100)
UNITS = r'(?:seconds?|minutes?|hours?|days?|bytes?|shards?|threads?|workers?|probes?|attempts?|retries|failures|successes)'
IN_LETTERS = re.compile(rf'\b({"|".join(LETTERS)}) {UNITS}\b')
NAMES = re.compile(r'\b(?:RFC \d+|[A-Z]\d*-?\d+|\dxx|HTTP/\d)\b')
NUMBER = re.compile(r'(?<![\w.])\d+(?:\.\d+)?')
TEST = re.compile(r'^static void (\w+)\(void \*\*|^def ([a-z]\w*)\(\):', re.M)
DEFINED = re.compile(r'^#\s*define\s+(\w+)|^}\s*(\w+)|^(?:[\w*]+ )+\**(\w+)\s*(?:\[[^\]]*\]\s*)*(?:\(|=|;)|^\s+(\w+) = ', re.M)


def numbers_in(words):
    """Returns the numbers as texts; `10 000` is one number, and so is `five minutes`."""
    words = re.sub(r'(?<=\d) (?=\d{3}\b)', '', NAMES.sub('', words))
    found = set(NUMBER.findall(words))
    return found | {str(LETTERS[word]) for word in IN_LETTERS.findall(words)}


def c_pieces(text):
    """Yields the definitions in C code, each as a whole: up to the line after which no bracket is
    open."""
    piece, depth = '', 0
    for line, bare in zip(text.split('\n'), guard.bare(text).split('\n')):
        piece += bare + '\n'
        depth += sum(bare.count(c) for c in '{(') - sum(bare.count(c) for c in '})')
        if depth <= 0 and not line.endswith('\\') and (bare.rstrip().endswith((';', '}')) or bare.startswith('#')):
            yield piece
            piece, depth = '', 0


def definitions(name, text):
    """Returns {name: its text}; a name with several definitions, such as an enumeration's members,
    has the text of all."""
    found = {}
    if name.endswith('.py'):
        for piece in re.split(r'\n(?=\S)', text):
            match = re.match(r'(?:def|class)\s+(\w+)|(\w+)\s*=', piece)
            if match:
                found[match.group(1) or match.group(2)] = piece
        return found
    for piece in c_pieces(text):
        for match in DEFINED.finditer(piece):
            word = next(group for group in match.groups() if group)
            found[word] = found.get(word, '') + piece
    return found


class Tests:
    def __init__(self, root):
        self.texts = {name: guard.read(root, name) for name in guard.tracked(root, '.c', '.py') if name.startswith('tests/')}
        self.places = {}  # test -> the files that have a test of this name
        self.parts = {}   # file -> its definitions
        for name, text in self.texts.items():
            for match in TEST.finditer(text):
                self.places.setdefault(match.group(1) or match.group(2), []).append(name)

    def text_of(self, test, place):
        """Returns the text of a test and of all definitions that it uses, directly or indirectly.
        """
        if place not in self.parts:
            self.parts[place] = definitions(place, self.texts[place])
        parts, text, seen, wanted = self.parts[place], '', set(), [test]
        while wanted:
            word = wanted.pop()
            if word in parts and word not in seen:
                seen.add(word)
                text += parts[word]
                wanted += re.findall(r'\w+', parts[word])
        return text

    def unknown_numbers(self, words, tests):
        """Returns the numbers in the words that occur in none of the tests. Returns nothing if a
        test has no text here, such as a guard."""
        wanted = numbers_in(words)
        if not wanted or not all(test in self.places for test in tests):
            return []
        known = set(re.findall(r'(?<![0-9])[0-9]+', ' '.join(tests)))
        for test in tests:
            for place in self.places[test]:
                known |= {number for number in NUMBER.findall(re.sub(r"(?<=\d)['uUlL]+", '', self.text_of(test, place)))}
        known |= {number.rstrip('0').rstrip('.') for number in known if '.' in number}
        return sorted(wanted - known) if tests else []
