#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Converts the scenario files of folders to C, so that the program contains them.

usage: embed.py OUT.c DEPFILE FOLDER…
"""
import os
import re
import sys


def natural(path):
    """Sorts P2 before P10, independent of the folder."""
    return [int(part) if part.isdigit() else part for part in re.split(r'(\d+)', os.path.basename(path))]


def quoted(line):
    return '"' + line.replace('\\', '\\\\').replace('"', '\\"').replace('?', '\\?') + '\\n"'


def main(out, depfile, *folders):
    paths = sorted((os.path.join(folder, name) for folder in folders for name in os.listdir(folder)
                    if name.endswith('.yaml')), key=natural)
    with open(out, 'w', encoding='utf-8') as file:
        file.write('#include "cli/simulate/builtin.h"\n\nconst struct wr_builtin wr_builtins[] = {\n')
        for path in paths:
            name = os.path.basename(path)[:-len('.yaml')]
            with open(path, encoding='utf-8') as text:
                lines = '\n     '.join(quoted(line) for line in text.read().splitlines())
            file.write(f'    {{"{name}",\n     {lines}}},\n')
        file.write('};\n\nconst size_t wr_builtins_count = sizeof wr_builtins / sizeof wr_builtins[0];\n')
    with open(depfile, 'w', encoding='utf-8') as file:  # also the folders, in which files are added and removed
        file.write(f'{out}: ' + ' '.join(path.replace(' ', '\\ ') for path in [*folders, *paths]) + '\n')


if __name__ == '__main__':
    main(*sys.argv[1:])
