#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Forbidden calls, and words that are forbidden in names."""
import os
import re

import guard

# call -> replacement
CALLS = {
    **dict.fromkeys('strcpy strcat strncpy strncat stpcpy stpncpy'.split(), 'a buffer of base, or memcpy with a checked size'),
    **dict.fromkeys('sprintf vsprintf'.split(), 'snprintf'),
    'gets': 'a read with a bound',
    **dict.fromkeys('strtok strtok_r'.split(), 'a parser that leaves its input alone'),
    **dict.fromkeys('alloca strdupa'.split(), 'memory with a stated bound'),
    **dict.fromkeys('atoi atol atoll atof'.split(), "the number parser of base, which knows errors"),
    **dict.fromkeys('rand srand random drand48'.split(), 'the seeded generator of base'),
    **dict.fromkeys('gmtime localtime ctime asctime'.split(), 'the _r form: these share one buffer'),
    **dict.fromkeys('system popen'.split(), 'no shell'),
    **dict.fromkeys('tmpnam tempnam mktemp'.split(), 'mkstemp'),
}
# In tests, AddressSanitizer detects errors of these calls.
COPIES = {'strcpy', 'strcat'}
CALL = re.compile(r'(?<![\w.>])(' + '|'.join(CALLS) + r')\s*\(')

# Words in names that carry no information: `handle` and `process` as verbs. As nouns, within a name, they are a
# uv_handle_t and a process. Names of other libraries are not checked.
WORDS = re.compile(r'(?:^|_)(?:utils?|common|misc|destroy)(?:_|$)|^(?:wr_|weir_)?(?:handle|process)_|(?:^|_)do_(?!not_)')
FOREIGN = re.compile(r'CLOCK_|curl_|gumbo_|pthread_|sem_|mtx_|cnd_|SSL_|uv_|__|_[A-Z]')

# path of a library file that may include stdio.h -> reason
STDIO_ALLOWED = {
    'src/serve/rules/key_file.c': 'rename(2) is declared there',
}
STDIO = re.compile(r'^\s*#\s*include\s*<stdio\.h>')


def findings(root, _build):
    for path in guard.tracked(root, '.c', '.h'):
        stem = os.path.splitext(os.path.basename(path))[0]
        if WORDS.search(stem):
            yield f'{path}: a name that says nothing'
        library = path.startswith('src/') and not path.startswith('src/cli/')
        for number, line in enumerate(guard.bare(guard.read(root, path)).split('\n'), 1):
            for call in CALL.findall(line):
                if call in COPIES and path.startswith('tests/'):
                    continue
                yield f'{path}:{number}: {call}; instead: {CALLS[call]}'
            if library and STDIO.match(line) and path not in STDIO_ALLOWED:
                yield f'{path}:{number}: a library never prints: no stdio.h outside cli'
            for name in re.findall(r'\b[A-Za-z_]\w*\b', '' if line.lstrip().startswith('#include') else line):
                if WORDS.search(name.lower()) and not FOREIGN.match(name):
                    yield f'{path}:{number}: {name}: a word that says nothing'


BAD = {what: {name: text} for what, name, text in (
    ('strcpy', 'src/base/x.c', 'void f(char *a) { strcpy(a, "x"); }\n'),
    ('atoi', 'tests/x.c', 'int f(char *a) { return atoi (a); }\n'),
    ('stdio in the library', 'src/limiter/table/x.c', '#include <stdio.h>\n'),
    ('a file named utils', 'src/base/utils.c', 'int x;\n'),
    ('a function named handle_', 'src/base/x.c', 'int wr_handle_it(void);\n'),
    ('a function named do_', 'src/base/x.c', 'int wr_do_it(void);\n'),
    ('a function named destroy', 'src/base/x.c', 'int wr_map_destroy(void);\n'),
)}
GOOD = {'src/cli/x.c': '#include <stdio.h>\n/* strcpy(a, b) in utils */\nint undo_it_if_they_do_not_mind(void) { return pthread_mutex_destroy(0); }\n'
        'const char *t = "atoi(1)"; int my_strcpy(int); int y(struct s *p) { return p->rand(1); }\n'}

if __name__ == '__main__':
    guard.main(findings, BAD, GOOD)
