#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Completion: the words that weir offers next, and that bash, zsh and fish use them."""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

import cases
from program import weir

FOLDER = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else ''
PATIENCE_S = 60  # time limit for a shell on a busy machine


def _offered(*words):
    run = weir('complete', '--', *words)
    assert run.returncode == 0 and run.stderr == '', run.stderr
    return [line.split('\t')[0] for line in run.stdout.splitlines()]


def _environment():
    return dict(os.environ, PATH=os.path.dirname(os.path.abspath(sys.argv[1])) + ':' + os.environ['PATH'])


def completion_offers_every_command_and_option_of_help():
    listed = re.findall(r'^  ([a-z]+) +\S', weir('--help').stdout, re.M)
    assert sorted(_offered('')) == sorted(listed)
    for command in ('crawl', 'fetch', 'guard'):
        options = re.findall(r'^  (?:-h, )?(--[a-z0-9-]+)', weir(command, '--help', 'all').stdout, re.M)
        assert sorted(_offered(command, '--')) == sorted(options), command


def completion_offers_only_words_with_the_typed_prefix():
    assert _offered('cr') == ['crawl']
    assert _offered('robots', 'c') == ['check']
    assert _offered('help', 'cr') == ['crawl']
    assert _offered('crawl', '--seeds') == ['--seeds-file']
    assert _offered('nothing', 'x') == [] and _offered('--vers') == ['--version']


def completion_offers_the_values_of_an_option():
    assert 'adaptive' in _offered('crawl', '--pace', '') and _offered('crawl', '--pace', 'ad') == ['adaptive']
    assert _offered('crawl', '--pace=ad') == ['--pace=adaptive']
    assert _offered('crawl', '--out', 'x') == [':files']
    assert _offered('crawl', '--quiet', '--pa') == ['--pace']  # a flag has no value
    assert _offered('crawl', '--', '--pace', 'x') == []


def completion_does_not_run_the_command():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([os.path.abspath(sys.argv[1]), 'complete', 'crawl', '--allow-private', 'http://127.0.0.1:1/'],
                       cwd=folder, check=True, timeout=60)
        assert os.listdir(folder) == []


def completion_works_in_bash():
    script = f'''source {FOLDER}/weir.bash
    try() {{ COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _weir 2>/dev/null; echo "${{COMPREPLY[*]}}"; }}
    try weir cr; try weir crawl --pace a; cd {FOLDER}; try weir crawl --out weir.b'''
    run = subprocess.run(['bash', '--norc', '-c', script], capture_output=True, text=True, timeout=PATIENCE_S, env=_environment())
    assert run.stdout.splitlines() == ['crawl', 'adaptive aimd', 'weir.bash'], run


def completion_works_in_fish():
    script = f'''source {FOLDER}/weir.fish; cd {FOLDER}
    for line in "weir cr" "weir crawl --pace ad" "weir crawl --pace=ad" "weir crawl --out weir.b"; complete -C $line; end'''
    with tempfile.TemporaryDirectory() as home:
        run = subprocess.run(['fish', '--no-config', '-c', script], capture_output=True, text=True, timeout=PATIENCE_S,
                             env=dict(_environment(), HOME=home))
    words = [line.split('\t')[0] for line in run.stdout.splitlines()]
    assert words == ['crawl', 'adaptive', '--pace=adaptive', 'weir.bash'], run


def completion_works_in_zsh():
    with tempfile.TemporaryDirectory() as home:
        shutil.copy(f'{FOLDER}/weir.zsh', f'{home}/_weir')
        variables = dict(_environment(), HOME=home, TERM='xterm')
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(home)
            os.execvpe('zsh', ['zsh', '-f', '-i'], variables)
        try:
            _expect(terminal, '', '')
            _expect(terminal, f'PS1="re""ady> "; fpath=({home} $fpath); autoload -Uz compinit; compinit -u -D\n', 'ready> ')
            _expect(terminal, 'weir cra\t', 'weir crawl ')
            _expect(terminal, '--pace ada\t', '--pace adaptive ')
        finally:
            os.close(terminal)
            os.waitpid(child, 0)


def _expect(terminal, typed, words):
    """Types the text and reads until `words` appear in the output, ignoring terminal control
    sequences."""
    seen, until = '', time.monotonic() + PATIENCE_S
    os.write(terminal, typed.encode())
    while words not in re.sub(r'\x1b\[[?0-9;]*[A-Za-z]|\x07|.\x08|\r', '', seen):
        assert time.monotonic() < until, f'{typed!r}: {seen!r}'
        if select.select([terminal], [], [], 0.2)[0]:
            seen += os.read(terminal, 4096).decode(errors='replace')


if __name__ == '__main__':
    cases.main()
