#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Includes point only down: a room (a folder of the source) may include its own headers and those
of lower floors."""
import os
import re

import guard

# Rooms from the lowest floor to the highest; ARCHITECTURE.md describes each room.
FLOORS = '''include base core/limit core/pace core/web core/admit core/cluster core/plan
            limiter/memory limiter/clock http/loop limiter/queue limiter/table limiter/pacer config crawl/store http/warc cluster/limit cluster/gate http/sitemap
            http/net http/client limiter/admission serve/rules serve/server watch/metrics crawl/engine watch/control watch/dashboard serve/daemon
            sim cli/kit cli/bench cli/simulate cli'''.split()

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+([<"])([^">]+)[">]', re.M)


def room_of(path):
    """Returns the room of a file: src/core/limit/in/x.c -> core/limit, include/weir/x.h -> include.
    For a folder that is in no room, returns the folder."""
    folder = room = 'include' if path.startswith('include/') else os.path.dirname(path)[len('src/'):]
    while room and room not in FLOORS:
        room = os.path.dirname(room)
    return room or folder


def may_use(room, other):
    if room == 'sim':  # sim runs whole crawls in virtual time with core alone
        return other in ('sim', 'include', 'base') or other.startswith('core/')
    return FLOORS.index(other) <= FLOORS.index(room)


def target(root, path, quote, name):
    """Returns the file of the project that an include names, or None for a system header."""
    places = [f'include/{name}', f'src/{name}']
    if quote == '"':
        places.insert(0, os.path.normpath(f'{os.path.dirname(path)}/{name}'))
    return next((place for place in places if os.path.isfile(os.path.join(root, place))), None)


def findings(root, _build):
    for path in guard.tracked(root, '.c', '.h'):
        if not path.startswith(('src/', 'include/')):
            continue
        room = room_of(path)
        if room not in FLOORS:
            yield f'{path}: the room "{room}" has no floor; give it one in {os.path.basename(__file__)}'
            continue
        for match in INCLUDE.finditer(guard.bare(guard.read(root, path))):
            quote, name = match.groups()
            hit = target(root, path, quote, name)
            if hit is None:
                if quote == '"' or name.startswith('weir/'):
                    yield f'{path}: includes "{name}", which is not there'
            elif quote == '"' and name.startswith('.'):
                yield f'{path}: includes "{name}"; write it from src/ on'
            elif quote == '"' and hit.startswith('include/'):
                yield f'{path}: includes "{name}"; write <{name}>, as our users do'
            elif not may_use(room, room_of(hit)):
                yield f'{path}: {room} may not include {room_of(hit)} ({name})'


HEADERS = {'include/weir/a.h': '', 'src/base/b.h': '', 'src/core/limit/l.h': '', 'src/limiter/clock/c.h': '',
           'src/sim/s.h': ''}
BAD = {
    'an include that points up': {**HEADERS, 'src/core/limit/x.c': '#include "limiter/clock/c.h"\n'},
    'base including core': {**HEADERS, 'src/base/x.c': '#include "core/limit/l.h"\n'},
    'a public header that includes a private one': {**HEADERS, 'include/weir/x.h': '#include "base/b.h"\n'},
    'sim using the shell': {**HEADERS, 'src/sim/x.c': '#include "limiter/clock/c.h"\n'},
    'the library using sim': {**HEADERS, 'src/limiter/clock/x.c': '#include "sim/s.h"\n'},
    'a room without a floor': {**HEADERS, 'src/attic/x.c': 'int x;\n'},
    'an include by a path that climbs': {**HEADERS, 'src/core/limit/x.c': '#include "../../limiter/clock/c.h"\n'},
    'a nested folder that reaches out of its room': {**HEADERS, 'src/core/limit/in/x.c': '#include "sim/s.h"\n'},
    'a command reaching up to the program': {**HEADERS, 'src/cli/m.h': '', 'src/cli/bench/x.c': '#include "cli/m.h"\n'},
    'a header that is missing': {**HEADERS, 'src/base/x.c': '#include "base/gone.h"\n'},
}
GOOD = {**HEADERS, 'src/sim/x.c': '#include "core/limit/l.h"\n#include <stdint.h>\n#include <weir/a.h>\n',
        'src/cli/in/x.c': '#include "sim/s.h"\n#include "limiter/clock/c.h"\n/*\n#include "nowhere.h"\n*/\n'}

if __name__ == '__main__':
    guard.main(findings, BAD, GOOD)
