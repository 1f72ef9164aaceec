#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A room includes its own headers, those of include/weir, and those of the rooms that src/rooms.txt gives it.

The table names no neighbour that nothing includes, and the drawing in ARCHITECTURE.md is made from it."""
import importlib.machinery
import importlib.util
import os
import re

import guard

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'tools', 'rooms')
loader = importlib.machinery.SourceFileLoader('rooms', TOOL)
tool = importlib.util.module_from_spec(importlib.util.spec_from_loader('rooms', loader))
loader.exec_module(tool)

# Public headers -> the room that has what they declare. A room that includes one may need that room.
OWNERS = {'limit.h': 'limiter/queue', 'table.h': 'limiter/table', 'pace.h': 'limiter/pacer', 'admit.h': 'limiter/admission',
          'client.h': 'http/client', 'handler.h': 'http/client', 'web.h': 'http/net'}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+([<"])([^">]+)[">]', re.M)


def room_of(path, rooms):
    """src/core/limit/in/x.c -> core/limit, include/weir/x.h -> include. A folder that is in no room is its own name."""
    folder = room = 'include' if path.startswith('include/') else os.path.dirname(path)[len('src/'):]
    while room and room not in rooms:
        room = os.path.dirname(room)
    return room or folder


def target(root, path, quote, name):
    """Returns the file of the project that an include names, or None for a system header."""
    places = [f'include/{name}', f'src/{name}']
    if quote == '"':
        places.insert(0, os.path.normpath(f'{os.path.dirname(path)}/{name}'))
    return next((place for place in places if os.path.isfile(os.path.join(root, place))), None)


def findings(root, _build):
    rooms = {'include': []} | {room: uses for room, _, _, uses in tool.rooms(root)}
    unused = {(room, other) for room, uses in rooms.items() for other in uses if room != 'cli'}
    for room, other in sorted(unused):
        if other not in rooms or list(rooms).index(other) >= list(rooms).index(room):
            yield f'src/rooms.txt: {room} may not include {other}, which does not stand above it in the table'
    for path in guard.tracked(root, '.c', '.h'):
        if not path.startswith(('src/', 'include/')):
            continue
        room = room_of(path, rooms)
        if room not in rooms:
            yield f'{path}: src/rooms.txt has no room "{room}"'
            continue
        for match in INCLUDE.finditer(guard.bare(guard.read(root, path))):
            quote, name = match.groups()
            hit = target(root, path, quote, name)
            if hit is None:
                if quote == '"' or name.startswith('weir/'):
                    yield f'{path}: includes "{name}", which is not there'
                continue
            other = room_of(hit, rooms)
            unused -= {(room, other), (room, OWNERS.get(os.path.basename(hit)) if other == 'include' else None)}
            if quote == '"' and name.startswith('.'):
                yield f'{path}: includes "{name}"; write it from src/ on'
            elif quote == '"' and hit.startswith('include/'):
                yield f'{path}: includes "{name}"; write <{name}>, as users do'
            elif other not in (room, 'include', *rooms[room]):
                yield f'{path}: {room} may not include {other} ({name}); src/rooms.txt says which rooms it may'
    for room, other in sorted(unused):
        yield f'src/rooms.txt: no file of {room} includes {other}; take it off the line'
    page = os.path.join(root, 'ARCHITECTURE.md')
    if os.path.exists(page) and tool.drawing(root) not in guard.read(root, 'ARCHITECTURE.md'):
        yield 'ARCHITECTURE.md: the drawing is not that of src/rooms.txt; tools/rooms --update makes it anew'


TABLE = {'src/rooms.txt': 'base | weir | b |\ncore/limit | weir | l | base\nlimiter/clock | weir | c | base\n'
                          'sim | program | s | base\ncli | program | p | *\n'}
HEADERS = {**TABLE, 'include/weir/a.h': '', 'src/base/b.h': '', 'src/core/limit/l.h': '#include "base/b.h"\n',
           'src/limiter/clock/c.h': '#include "base/b.h"\n', 'src/sim/s.h': '#include "base/b.h"\n'}
BAD = {
    'an include that points up': {**HEADERS, 'src/core/limit/x.c': '#include "limiter/clock/c.h"\n'},
    'base including core': {**HEADERS, 'src/base/x.c': '#include "core/limit/l.h"\n'},
    'a public header that includes a private one': {**HEADERS, 'include/weir/x.h': '#include "base/b.h"\n'},
    'a room that is no neighbour': {**HEADERS, 'src/limiter/clock/x.c': '#include "core/limit/l.h"\n'},
    'the library using sim': {**HEADERS, 'src/limiter/clock/x.c': '#include "sim/s.h"\n'},
    'a room that is not in the table': {**HEADERS, 'src/attic/x.c': 'int x;\n'},
    'an include by a path that climbs': {**HEADERS, 'src/core/limit/x.c': '#include "../../base/b.h"\n'},
    'a nested folder that reaches out of its room': {**HEADERS, 'src/core/limit/in/x.c': '#include "sim/s.h"\n'},
    'a header that is missing': {**HEADERS, 'src/base/x.c': '#include "base/gone.h"\n'},
    'a neighbour that nothing needs': {**HEADERS, 'src/core/limit/l.h': ''},
    'a drawing of another table': {**HEADERS, 'ARCHITECTURE.md': '```\n```\n'},
}
GOOD = {**HEADERS, 'src/sim/x.c': '#include "base/b.h"\n#include <stdint.h>\n#include <weir/a.h>\n',
        'src/cli/in/x.c': '#include "sim/s.h"\n#include "limiter/clock/c.h"\n/*\n#include "nowhere.h"\n*/\n'}

if __name__ == '__main__':
    guard.main(findings, BAD, GOOD)
