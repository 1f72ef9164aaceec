#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes files as C, so that the program carries them in itself.

usage: embed.py OUTPUT.c FILE...    struct wr_dashboard_file wr_dashboard_files[], of watch/dashboard/web_files.h
"""
import hashlib
import os
import sys

TYPES = {'.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8',
         '.svg': 'image/svg+xml'}
PER_LINE = 24


def rows(data):
    for start in range(0, len(data), PER_LINE):
        yield '    ' + ', '.join(str(byte) for byte in data[start:start + PER_LINE]) + ','


def main(output, *paths):
    arrays, entries = [], []
    for number, path in enumerate(paths):
        with open(path, 'rb') as file:
            data = file.read()
        name = os.path.basename(path)
        address = '/' if name == 'index.html' else f'/{name}'
        tag = hashlib.sha256(data).hexdigest()[:16]
        arrays.append(f'static const unsigned char file_{number}[] = {{ /* {name} */\n' + '\n'.join(rows(data)) + '\n};\n')
        entries.append(f'    {{"{address}", "{TYPES[os.path.splitext(name)[1]]}", "\\"{tag}\\"", file_{number}, {len(data)}}},')
    with open(output, 'w', encoding='ascii') as file:
        file.write('/* Made by src/watch/dashboard/embed.py. */\n#include "watch/dashboard/web_files.h"\n\n' + '\n'.join(arrays))
        file.write('\nconst struct wr_dashboard_file wr_dashboard_files[] = {\n' + '\n'.join(entries) + '\n};\n')
        file.write('const size_t wr_dashboard_files_count = sizeof wr_dashboard_files / sizeof wr_dashboard_files[0];\n')


if __name__ == '__main__':
    main(*sys.argv[1:])
