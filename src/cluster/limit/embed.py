#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes Lua scripts as C strings, in the given order, without comment lines: scripts are sent to the store.

usage: embed.py OUT.c FILE…
"""
import sys


def main(out, *paths):
    with open(out, 'w', encoding='utf-8') as file:
        file.write('#include "cluster/limit/script.h"\n\n')
        for i, path in enumerate(paths):
            with open(path, encoding='utf-8') as text:
                lines = [line.strip() for line in text if line.strip() and not line.startswith('--')]
            codes = ','.join(str(byte) for byte in '\n'.join(lines).encode() + b'\0')
            file.write(f'static const char TEXT_{i}[] = {{{codes}}};\n')
        names = ', '.join(f'TEXT_{i}' for i in range(len(paths)))
        file.write(f'\nconst char *const wr_redis_script_texts[] = {{{names}}};\n')


if __name__ == '__main__':
    main(*sys.argv[1:])
