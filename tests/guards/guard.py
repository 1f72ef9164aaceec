# SPDX-License-Identifier: MIT
"""Common part of all guards.

A guard is a script GUARD.py with a function `findings(root, build)`, which yields one line for each
finding, and a dictionary `BAD` of trees in which it must find something. `main` runs the guard on
those trees first, so that a guard that no longer detects anything fails, and then on the real tree.
"""
import os
import re
import subprocess
import sys
import tempfile

SKIP = 77  # the exit status that means "skipped" to Meson


class Skip(Exception):
    """The guard cannot judge here; the text says why."""


class Missing(Skip):
    """Something that tools/setup installs is missing: in CI, that is a failure."""


def tracked(root, *endings):
    """Returns the tracked files under root with one of these endings (all, if none is given),
    relative to root, sorted.

    Outside a git clone (a release archive, a self-test) every file counts, except in build folders.
    """
    git = ['git', '-c', 'safe.directory=*', '-C', root, 'ls-files', '-z', '--full-name']
    top = subprocess.run(['git', '-c', 'safe.directory=*', '-C', root, 'rev-parse', '--show-toplevel'],
                         capture_output=True, text=True).stdout.strip()
    if top and os.path.realpath(top) == os.path.realpath(root):
        names = subprocess.run(git, capture_output=True, text=True, check=True).stdout.split('\0')
    else:
        names = [os.path.relpath(os.path.join(folder, name), root)
                 for folder, _, files in os.walk(root) for name in files]
        names = [name for name in names if not re.match(r'build|\.git/', name)]
    return sorted(name for name in names if name.endswith(endings or '') and os.path.isfile(os.path.join(root, name)))


def read(root, name):
    with open(os.path.join(root, name), encoding='utf-8', errors='replace') as file:
        return file.read()


BLANK = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def bare(text):
    """Blanks comments, strings and characters in C code; line numbers stay the same. Include lines
    keep their names."""
    def blank(match):
        return re.sub(r'[^\n]', ' ', match.group(0))
    lines = text.split('\n')
    kept = {i: line for i, line in enumerate(lines) if re.match(r'\s*#\s*include', line)}
    result = BLANK.sub(blank, text).split('\n')
    for i, line in kept.items():
        if result[i].strip():  # unless it is inside a comment
            result[i] = line
    return '\n'.join(result)


def write_tree(folder, files):
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)


def blind(findings, bad):
    """Yields the names of the bad trees in which the guard finds nothing."""
    for what, files in bad.items():
        with tempfile.TemporaryDirectory() as folder:
            write_tree(folder, files)
            if not list(findings(folder, folder)):
                yield what


def main(findings, bad, good=None):
    """Runs a guard: `GUARD.py ROOT BUILD`. `good` is a tree in which it must find nothing."""
    root, build = sys.argv[1], sys.argv[2]
    try:
        for what in blind(findings, bad):
            sys.exit(f'self-test: this guard does not notice {what}')
        if good is not None:
            with tempfile.TemporaryDirectory() as folder:
                write_tree(folder, good)
                for line in findings(folder, folder):
                    sys.exit(f'self-test: this guard objects to a sound tree: {line}')
        count = 0
        for line in findings(root, build):
            print(line)
            count += 1
    except Skip as why:
        print(f'skipped: {why}')
        sys.exit(1 if isinstance(why, Missing) and os.environ.get('CI') in ('true', '1') else SKIP)
    sys.exit(1 if count else 0)
