#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Base and core call no function outside an allowed list, and no room calls a room above it.

The guard checks the undefined symbols of each room's static library: a header can hide a call, but
not from the linker.
"""
import os
import re
import subprocess
import tempfile

import guard
from includes import tool

# All functions of libc that base and core may call. No clock, socket, thread, stdio or malloc;
# nothing that depends on the locale.
LIBC = set('''memcpy memmove memset memcmp memchr
              strlen strnlen strcmp strncmp strchr strrchr strspn strcspn strstr
              __memcpy_chk __memmove_chk __memset_chk
              __assert_fail __stack_chk_fail __tls_get_addr _GLOBAL_OFFSET_TABLE_'''.split())
# Functions of libm, for estimates.
LIBM = {name + kind for name in 'sqrt cbrt exp exp2 log log2 log10 pow fmin fmax floor ceil'.split() for kind in ('', 'f')}
# libgcc: 128-bit arithmetic, bit counting, and detection of the processor's instructions.
LIBGCC = re.compile(r'__(u?(div|mod|divmod)|mul|mulo|ashl|ashr|lshr|popcount|clz|ctz)[sdt]i[234]?$'
                    r'|__cpu_(model|indicator_init)$')


def symbols(library):
    """Returns ({name: object} undefined, {name} defined) of one static library."""
    text = subprocess.run(['nm', '-A', '-P', library], capture_output=True, text=True, check=True).stdout
    undefined, defined = {}, set()
    for line in text.splitlines():
        where, name, kind = re.match(r'.*\[(?:.*/)?(.*?)\]: (\S+) (\S)', line).groups()
        if kind in 'Uwv':
            undefined.setdefault(name, where)
        elif kind.isupper():
            defined.add(name)
    return {name: where for name, where in undefined.items() if name not in defined}, defined


def reach(rooms):
    """Returns {room: the rooms that it may call}: those that it includes, and those that their inline functions call."""
    found = {}
    for room, _, _, uses in rooms:
        found[room] = set(uses).union(*(found[other] for other in uses))
    return found


def libraries(root, build):
    """Returns {room: path of its library} of the rooms that have been built."""
    found = {}
    for room, *_ in tool.rooms(root):
        path = os.path.join(build, 'src', room, f'libweir_{room.replace("/", "_")}.a')
        if os.path.exists(path):
            found[room] = path
    return found


def findings(root, build):
    rooms = {room: symbols(path) for room, path in libraries(root, build).items()}
    reached = reach(tool.rooms(root))
    if 'base' not in rooms:
        yield f'{build}: no room has been built there'
    home = {name: room for room, (_, defined) in rooms.items() for name in defined}
    for room, (undefined, _) in rooms.items():
        pure = room == 'base' or room.startswith('core/')
        for name, where in sorted(undefined.items()):
            if name in home:
                if home[name] not in reached[room]:
                    yield f'{room} ({where}): calls {name} of {home[name]}; src/rooms.txt does not let it'
            elif name.startswith(('wr_', 'weir_')):
                yield f'{room} ({where}): calls {name}, which no room defines'
            elif pure and name not in LIBC | LIBM and not LIBGCC.match(name):
                yield f'{room} ({where}): calls {name}; base and core may not'


def compile_room(build, room, text):
    folder = os.path.join(build, 'src', room)
    os.makedirs(folder, exist_ok=True)
    with tempfile.NamedTemporaryFile('w', suffix='.c') as source:
        source.write(text)
        source.flush()
        subprocess.run([os.environ.get('CC', 'cc').split()[0], '-O0', '-w', '-c', source.name, '-o', f'{folder}/x.o'],
                       check=True)
    subprocess.run(['ar', 'crs', f'{folder}/libweir_{room.replace("/", "_")}.a', f'{folder}/x.o'], check=True)


def compiled(root, rooms):
    """Returns findings() of rooms given as text."""
    with tempfile.TemporaryDirectory() as build:
        for room, text in rooms.items():
            compile_room(build, room, text)
        return list(findings(root, build))


def judged(root, build):
    """Compiles the tree of a self-test first; the real tree has been compiled."""
    if root != build:
        return findings(root, build)
    rooms = {os.path.dirname(name)[len('src/'):]: guard.read(root, name) for name in guard.tracked(root, '.c')}
    return compiled(root, rooms)


BASE = {'src/rooms.txt': 'base | weir | b |\ncore/limit | weir | l | base\nlimiter/clock | weir | c | base\n', 'src/base/b.c': 'int wr_b(void) { return 0; }\n'}
LIMIT = 'int wr_l(void) { return 0; }\n'
BAD = {
    what: {**BASE, 'src/core/limit/l.c': text} for what, text in {
        'a clock in core': 'int clock_gettime(int, void *);\nint wr_l(void) { return clock_gettime(1, 0); }\n',
        'malloc in core': 'void *malloc(unsigned long);\nvoid *wr_l(void) { return malloc(1); }\n',
        'printing in core': 'int puts(const char *);\nint wr_l(void) { return puts(""); }\n',
        'a lock in core': 'int pthread_mutex_lock(void *);\nint wr_l(void) { return pthread_mutex_lock(0); }\n',
        'a socket in core': 'int socket(int, int, int);\nint wr_l(void) { return socket(1, 1, 1); }\n',
        'a call of something that does not exist': 'int wr_gone(void);\nint wr_l(void) { return wr_gone(); }\n',
    }.items()
}
BAD['a call that points up'] = {**BASE, 'src/base/b.c': 'int wr_l(void);\nint wr_b(void) { return wr_l(); }\n',
                                'src/core/limit/l.c': LIMIT}
BAD['an empty build'] = {'src/rooms.txt': BASE['src/rooms.txt']}
GOOD = {**BASE, 'src/core/limit/l.c': 'int wr_b(void);\nvoid *memset(void *, int, unsigned long);\n'
        'int wr_l(char *c, int n) { memset(c, 0, n); return wr_b(); }\n'
        '__int128 wr_d(__int128 a, __int128 b) { return a / b; }\n',
        'src/limiter/clock/c.c': 'int clock_gettime(int, void *);\nint wr_c(void) { return clock_gettime(1, 0); }\n'}

if __name__ == '__main__':
    guard.main(judged, BAD, GOOD)
