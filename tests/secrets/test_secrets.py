#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No secret of a configuration appears in any output, whatever is wrong with the configuration.
Every setting that may hold a secret is tried with every kind of mistake, for every kind of
output.

usage: test_secrets.py WEIR
"""
import itertools
import os
import re
import sys
import tempfile
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', each) for each in ('cli', 'serve', 'lib')]
import cases  # noqa: E402
from daemon import TOKEN, Daemon  # noqa: E402
from spawner import Spawner  # noqa: E402
from wrong import ADMISSION, CANARY, fields, lines, options, values  # noqa: E402

SPAWNER = Spawner(sys.argv[1])
ADMIN = {'Authorization': f'Bearer {TOKEN}'}
# further arguments of each command, with which it ends before its first request
NOWHERE = {'crawl': [], 'fetch': [], 'warm': ['http://127.0.0.1:1/']}


def _discreet(told, what):
    assert CANARY not in told, f'{what}: {told}'


def _run(words, what, **more):
    run = SPAWNER.run(*words, **more)
    assert run.returncode in (0, 1, 2), (what, run)
    _discreet(run.stdout + run.stderr, what)
    return run.returncode


def every_secret_setting_is_in_the_table():
    assert fields() == set(ADMISSION)
    assert options() == [('crawl', 'header'), ('crawl', 'proxy'), ('crawl', 'state'), ('fetch', 'header'), ('fetch', 'proxy'), ('fetch', 'share'),
                         ('warm', 'header'), ('warm', 'proxy')]


def _files_of_commands():
    """Yields (description, text) of files with a secret of a command, most of them invalid."""
    for section, name in options():
        for line in lines(name, '  '):
            yield f'{section}: {line}', f'{section}:\n  '.encode() + line + b'\n'
        yield f'{section} in a line', f'{section}: {{{name}:{CANARY}}}\n'.encode()


def _files_of_rules():
    for name, text in ADMISSION.items():
        pad = re.search(r'( *)\{line\}', text)[1]
        for line in lines(name, pad):
            yield f'{name}: {line}', text.encode().replace(b'{line}', line)
        yield f'{name} in a line', f'rules: [{{name: r, limit: 1/s, {name}:{CANARY}}}]\n'.encode()
        yield f'{name} in a line', f'rules: []\nadmission: {{{name}:{CANARY}}}\n'.encode()


def no_error_about_a_file_shows_a_secret():  # M10
    refused = 0
    with tempfile.TemporaryDirectory() as folder:
        # every fifth file only: the daemon of the last test below reads all of them
        for what, text in itertools.chain(_files_of_commands(), itertools.islice(_files_of_rules(), 0, None, 5)):
            with open(f'{folder}/weir.yaml', 'wb') as file:
                file.write(text)
            refused += _run(['config', 'check', f'{folder}/weir.yaml'], what) != 0
    assert refused > 500


def no_error_about_a_flag_or_variable_shows_a_secret():  # M10
    with tempfile.TemporaryDirectory() as folder:
        for section, name in options():
            for value in values(name):
                what = f'{section} --{name} {value}'
                _run(['config', section, f'--{name}={value}'], what)
                _run(['config', section, '--json', f'--{name}', value, *NOWHERE[section]], what)
                environment = {**os.environ, f'WEIR_{section.upper()}_{name.upper()}': value}
                _run(['config', section], what + ' in the environment', env=environment)
            for words in ([f'--{name}:{CANARY}'], [f'--{name}http://me:{CANARY}@127.0.0.1'], [f'-{name[0]}{CANARY}'], [f'--no-{name}=x: {CANARY}'], [f'-{CANARY}']):
                _run([section, *words], words, cwd=folder)
                _run(words, words, cwd=folder)
            _run(['config', section], name, env={**os.environ, f'WEIR_{section.upper()}_{name.upper()}S': CANARY})


def _stream(page, view):
    """Returns the events of the dashboard up to the first view."""
    with urllib.request.urlopen(f'{page}panel/stream?view={view}', timeout=60) as answer:
        told = b''
        while b'event: view' not in told or not told.endswith(b'\n\n'):
            told += answer.readline()
    return told.decode()


def no_response_of_a_daemon_shows_a_secret_of_its_file():  # M10
    text = (f'rules:\n  - name: r\n    key: token:authorization\n    limit: 5/h\n    deny_keys: [Bearer {CANARY}]\n    match: {{header: [{{name: x-plan, value: {CANARY}}}]}}\n'
            f'  - {{name: s, limit: 9/h, share: {{overshoot: 1%}}}}\nadmission: {{trusted: [127.0.0.0/8, unix], secret: {CANARY}, '
            f'store: {{url: "redis://me:{CANARY}@127.0.0.1:1", nodes: 2}}}}\n')
    told = []
    with Daemon(text, ['--token-file', '{folder}/token', '--dashboard', '127.0.0.1:0', '--state', '{folder}/state']) as daemon:
        page = daemon.dashboard()
        asked = {'Authorization': f'Bearer {CANARY}', 'X-Plan': CANARY}
        told.append(str(daemon.check(**{name.replace('-', '_'): value for name, value in asked.items()})))
        told.append(str(daemon.call('try', {'target': '/', 'method': 'GET', 'host': 'a', 'headers': asked})))
        for what, wrong in _files_of_rules():
            with open(daemon.config, 'wb') as file:
                file.write(wrong)
            answer = daemon.ask('POST', '/v1/admin/reload', '', ADMIN)
            _discreet(str(answer), what)
        told += [str(daemon.ask('GET', path, fields={})) for path in ('/metrics', '/healthz')]
        told += [_stream(page, view) for view in ('overview', 'rules')]
        daemon.stop()
        with open(f'{daemon.folder}/log', encoding='utf-8', errors='replace') as file:
            told.append(file.read())
        assert 'not reloaded' in told[-1]
    for each in told:
        _discreet(each, 'the daemon')


if __name__ == '__main__':
    with SPAWNER:
        cases.main()
