#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the scenario files of a folder as C, so that the program has them wherever it is.

usage: embed.py FOLDER OUT.c DEPFILE
"""
import os
import re
import sys


def natural(name):
    """P2 before P10."""
    return [int(part) if part.isdigit() else part for part in re.split(r'(\d+)', name)]


def quoted(line):
    return '"' + line.replace('\\', '\\\\').replace('"', '\\"').replace('?', '\\?') + '\\n"'


def main(folder, out, depfile):
    names = sorted((name[:-len('.yaml')] for name in os.listdir(folder) if name.endswith('.yaml')), key=natural)
    paths = [os.path.join(folder, f'{name}.yaml') for name in names]
    with open(out, 'w', encoding='utf-8') as file:
        file.write('#include "cli/simulate/builtin.h"\n\nconst struct wr_builtin wr_builtins[] = {\n')
        for name, path in zip(names, paths):
            with open(path, encoding='utf-8') as text:
                lines = '\n     '.join(quoted(line) for line in text.read().splitlines())
            file.write(f'    {{"{name}",\n     {lines}}},\n')
        file.write('};\n\nconst size_t wr_builtins_count = sizeof wr_builtins / sizeof wr_builtins[0];\n')
    with open(depfile, 'w', encoding='utf-8') as file:  # the folder, too: files come and go
        file.write(f'{out}: ' + ' '.join(path.replace(' ', '\\ ') for path in [folder, *paths]) + '\n')


if __name__ == '__main__':
    main(*sys.argv[1:])
