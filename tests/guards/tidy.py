#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""clang-tidy reports nothing in src/. The checks, each with its reason, are in .clang-tidy.
Versions differ in what the same checks find, so only those of Debian 12 and 13 are used; another
version would report findings that have never been reviewed.

A file is checked again when the file, a header that it includes, its compiler's command,
.clang-tidy or the tool has changed.
"""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import tempfile

import guard
import remembered

CONFIG = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '.clang-tidy')
VERSIONS = '14', '19'
NAMES = *(f'clang-tidy-{version}' for version in VERSIONS), 'clang-tidy'
TOOL = next((name for name in NAMES if shutil.which(name)), None)


def sources(root, build):
    """Returns {path: its entry of the compilation database} of the C files of src/. Tests compile
    some files again; the first entry of a file is used, because clang-tidy would check the file
    once for each entry."""
    with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as file:
        entries = json.load(file)
    src = os.path.realpath(os.path.join(root, 'src')) + os.sep
    found = {}
    for entry in entries:
        path = os.path.realpath(os.path.join(entry['directory'], entry['file']))
        if path.startswith(src):
            found.setdefault(path, entry)
    return found


def files_read(build):
    """Returns {object: the files that its compilation read} from ninja's log, for objects that are
    up to date."""
    run = subprocess.run(['ninja', '-C', build, '-t', 'deps'], capture_output=True, text=True)
    found, files = {}, []
    for line in run.stdout.splitlines():
        head = re.match(r'(\S.*): #deps \d+, .*\((VALID|STALE)', line)
        if head:
            files = found.setdefault(head.group(1), []) if head.group(2) == 'VALID' else []
        elif line.startswith('    '):
            files.append(os.path.join(build, line.strip()))
    return found


def digests(build, entries, version):
    """Returns {path: a digest of everything that clang-tidy's verdict on the file depends on}, for
    files whose dependencies are known."""
    read, known, result = files_read(build) if entries else {}, remembered.Digests(), {}
    settings = guard.read(os.path.dirname(CONFIG), os.path.basename(CONFIG))
    for path, entry in entries.items():
        files = read.get(entry.get('output'))
        if files and all(os.path.exists(file) for file in files):
            result[path] = remembered.of_text(version, settings, PATIENCE, entry['command'],
                                              [(file, known.of_file(file)) for file in files])
    return result


# The analyzer stops after this number of states per function. The default of 225000 finds nothing
# more here and takes ten times as long; this number is low enough to run the guard in every `make
# test`.
PATIENCE = [f'--extra-arg={word}' for word in ('-Xclang', '-analyzer-config', '-Xclang', 'max-nodes=8000')]


def tidy(build, path):
    run = subprocess.run([TOOL, '--quiet', f'--config-file={CONFIG}', *PATIENCE, '-p', build, path],
                         capture_output=True, text=True)
    lines = [line for line in run.stdout.splitlines() if ': error: ' in line or ': warning: ' in line]
    if run.returncode and not lines:
        lines = [f'{path}: clang-tidy ended with {run.returncode}: {run.stderr.strip()[-500:]}']
    return lines


def judge(build, entries, version):
    """Returns {path: findings}."""
    kept = remembered.Remembered(build, 'tidy')
    digest_of = digests(build, entries, version)
    found = {path: kept.get(path, digest_of.get(path)) for path in entries}
    changed = [path for path in sorted(entries) if found[path] is None]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        guard.write_tree(folder, {'compile_commands.json': json.dumps([entries[path] for path in changed])})
        for path, lines in zip(changed, pool.map(lambda path: tidy(folder, path), changed)):
            found[path] = lines
            kept.keep(path, digest_of.get(path), lines)
    kept.save()
    return found


def findings(root, build):
    if TOOL is None:
        raise guard.Missing(f'there is no clang-tidy here; version {" or ".join(VERSIONS)} is wanted')
    version = subprocess.run([TOOL, '--version'], capture_output=True, text=True).stdout
    if not re.search(rf'version ({"|".join(VERSIONS)})\.', version):
        raise guard.Skip(f'clang-tidy {" or ".join(VERSIONS)} is wanted, and this is "{" ".join(version.split())}"')
    found = judge(build, sources(root, build), version)
    # An error in a header is reported for every file that includes it.
    yield from sorted({re.sub(r'^\S*?/(?=(src|include)/)', '', line) for lines in found.values() for line in lines})


def compiled(text):
    """Returns the tree of a self-test: one file and the database that compiles it."""
    return {'src/x.c': text, 'compile_commands.json': json.dumps(
        [{'directory': '/', 'file': 'src/x.c', 'command': 'cc -std=c17 -c src/x.c'}])}


def judged(root, build):
    if root == build:  # the database must name the temporary folder
        path = os.path.join(build, 'compile_commands.json')
        text = guard.read(build, 'compile_commands.json').replace('"directory": "/"', f'"directory": "{root}"')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
    return findings(root, build)


BAD = {
    'recursion': compiled('int x(int n);\nint x(int n)\n{\n    return n == 0 ? 0 : x(n - 1);\n}\n'),
    'a memset with its arguments swapped': compiled('#include <string.h>\nvoid x(char *c);\nvoid x(char *c)\n{\n'
                                                    '    memset(c, sizeof(int), 0);\n}\n'),
    'a null pointer used': compiled('int x(int *p);\nint x(int *p)\n{\n    if (p)\n        return 0;\n    return *p;\n}\n'),
}
GOOD = compiled('int x(int n);\nint x(int n)\n{\n    return n + 1;\n}\n')

if __name__ == '__main__':
    guard.main(judged, BAD, GOOD)
