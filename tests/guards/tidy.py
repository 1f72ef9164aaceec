#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""clang-tidy is content with src/. The checks, each with its reason, stand in .clang-tidy. Each version sees other things by
the same checks, so only those of Debian 12 and 13 judge: with another, a clone would fail for what nobody has looked at."""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess

import guard

CONFIG = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '.clang-tidy')
VERSIONS = '14', '19'
NAMES = *(f'clang-tidy-{version}' for version in VERSIONS), 'clang-tidy'
TOOL = next((name for name in NAMES if shutil.which(name)), None)


def sources(root, build):
    """The C files of src/ that this build compiles, each once."""
    with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as file:
        entries = json.load(file)
    paths = {os.path.realpath(os.path.join(entry['directory'], entry['file'])) for entry in entries}
    src = os.path.realpath(os.path.join(root, 'src')) + os.sep
    return sorted(path for path in paths if path.startswith(src))


# The analyzer walks paths until it has seen so many states. A tenth of its default finds what it finds here anyway, in a
# tenth of the time, and keeps the guard in every `make test`.
PATIENCE = [f'--extra-arg={word}' for word in ('-Xclang', '-analyzer-config', '-Xclang', 'max-nodes=20000')]


def tidy(build, path):
    run = subprocess.run([TOOL, '--quiet', f'--config-file={CONFIG}', *PATIENCE, '-p', build, path],
                         capture_output=True, text=True)
    lines = [line for line in run.stdout.splitlines() if ': error: ' in line or ': warning: ' in line]
    if run.returncode and not lines:
        lines = [f'{path}: clang-tidy ended with {run.returncode}: {run.stderr.strip()[-500:]}']
    return lines


def findings(root, build):
    if TOOL is None:
        raise guard.Skip(f'there is no clang-tidy here; version {" or ".join(VERSIONS)} is wanted')
    version = subprocess.run([TOOL, '--version'], capture_output=True, text=True).stdout
    if not re.search(rf'version ({"|".join(VERSIONS)})\.', version):
        raise guard.Skip(f'clang-tidy {" or ".join(VERSIONS)} is wanted, and this is "{" ".join(version.split())}"')
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda path: tidy(build, path), sources(root, build))
    # A header's fault shows in every file that includes it.
    yield from sorted({re.sub(r'^\S*?/(?=(src|include)/)', '', line) for lines in found for line in lines})


def compiled(text):
    """A self-test tree: one file and the database that compiles it."""
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
