#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The systemd unit of contrib/ fits the program: its lines are run as systemd runs them.

usage: test_unit.py WEIR SOURCE
"""
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'cli')]

import cases  # noqa: E402
from daemon import TOKEN, Daemon, said  # noqa: E402
from program import weir  # noqa: E402

UNIT = 'contrib/systemd/weir.service'
RULES = 'rules: [{name: five, key: "token:authorization", limit: %d/h}]\nadmission: {trusted: [unix]}\n'
SECRET = 'hunter2-hunter2-hunter2'
SHARED = 'rules: [{name: r, limit: 9/h, share: {overshoot: 0%, on_outage: open}}]\nadmission: {trusted: [unix], store: {nodes: 1}}\n'
SYSTEMD = '''import os, sys
os.dup2(int(sys.argv[1]), 3)
os.execve(sys.argv[2], sys.argv[2:], {**os.environ, "LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"})'''


def _source(path):
    with open(os.path.join(sys.argv[2], path), encoding='utf-8') as file:
        return file.read()


def _settings(text=None):
    """Returns (key, value) of all lines of the unit that are no comments."""
    return [tuple(line.split('=', 1)) for line in (text or _source(UNIT)).splitlines() if re.match(r'[A-Z]\w*=', line)]


def _with_all_credentials():
    """Returns the unit with its commented lines for a token and a store enabled."""
    return re.sub(r'^# (LoadCredential=|Environment=)', r'\1', _source(UNIT), flags=re.M)


class _Service(Daemon):
    """weir serve as the unit starts it, in a folder that stands for /etc, /run and /var/lib."""

    def __init__(self, rules, secrets, unit=None):
        self.unit, self.secrets = _settings(unit), secrets
        super().__init__(rules)

    def place(self, text):
        """Replaces the paths and specifiers of the unit by those of this folder."""
        for path in ('/etc/weir', '/var/lib/weir'):
            text = text.replace(path, self.folder)
        return text.replace('${CREDENTIALS_DIRECTORY}', f'{self.folder}/credentials').replace('%d', f'{self.folder}/credentials')

    def command(self, key):
        found = [self.place(value) for name, value in self.unit if name == key]
        assert len(found) == 1, key
        words = shlex.split(found[0])
        return [os.path.abspath(sys.argv[1]), *words[1:]] if words[0] == 'weir' else words

    def load_credentials(self):
        """Makes the credentials as systemd does: read-only files of the service."""
        shutil.rmtree(f'{self.folder}/credentials', ignore_errors=True)
        os.mkdir(f'{self.folder}/credentials')
        for name, source in (value.split(':') for key, value in self.unit if key == 'LoadCredential'):
            assert source == f'/etc/weir/{name}'
            path = f'{self.folder}/credentials/{name}'
            with open(path, 'w', encoding='ascii') as file:
                file.write(self.secrets[name] + '\n')
            os.chmod(path, 0o400)
        os.chmod(f'{self.folder}/credentials', 0o500)

    def start(self, *_):
        self.load_credentials()
        if not self.sockets:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(self.path)
            self.listener.listen(64)
            self.sockets = (self.listener.fileno(),)
            self.log = open(f'{self.folder}/log', 'w+', encoding='utf-8')
        environment = dict(self.place(value).split('=', 1) for key, value in self.unit if key == 'Environment')
        assert subprocess.run(self.command('ExecStartPre'), stdin=subprocess.DEVNULL, capture_output=True, timeout=60).returncode == 0
        words = [sys.executable, '-c', SYSTEMD, str(self.sockets[0]), *self.command('ExecStart')]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=self.log, pass_fds=self.sockets,
                                        env={**os.environ, **environment, 'CREDENTIALS_DIRECTORY': f'{self.folder}/credentials'})
        self.starts = getattr(self, 'starts', 0) + 1
        self.wait_for('(?s)' + '.*'.join(self.starts * ['listens']))

    def granted(self, times):
        """Sends this many requests with one token. Returns how many were admitted."""
        answers = [self.ask('GET', '/check', fields={**said({}), 'Authorization': 'Bearer abc'}, connection=self.unix())[0] for _ in range(times)]
        return answers.count(204)

    def __exit__(self, *why):
        super().__exit__(*why)
        self.listener.close()


def systemd_unit_runs_with_a_credential_and_reloads_its_file():  # V10, M10
    with _Service(RULES % 5, {'secret': SECRET}) as service:
        assert service.granted(7) == 5
        service.write((RULES % 8).replace('five', 'eight'))
        reload = [value for key, value in service.unit if key == 'ExecReload']
        assert reload == ['/bin/kill -HUP $MAINPID']
        service.process.send_signal(signal.SIGHUP)
        service.wait_for('serve: reloaded')
        assert service.granted(9) == 8
        assert service.process.send_signal(signal.SIGTERM) is None and service.process.wait(timeout=60) == 0
        service.start()
        assert service.granted(3) == 0, 'with the same secret the state has the same keys'
        assert SECRET not in service.lines()


def systemd_unit_accepts_token_and_store_credentials():
    secrets = {'secret': SECRET, 'token': TOKEN, 'store': f'redis://me:{SECRET}@127.0.0.1:1'}
    with _Service(SHARED, secrets, _with_all_credentials()) as service:
        status, _, text = service.ask('POST', '/v1/admin/reload', '', {'Authorization': f'Bearer {TOKEN}'}, service.unix())
        assert status == 200, text
        assert service.ask('POST', '/v1/admin/reload', '', {'Authorization': 'Bearer nobody'}, service.unix())[0] == 401
        assert service.granted(1) == 1
        service.wait_for('the store of shared limits cannot be reached')
        assert SECRET not in service.lines() + str(service.ask('GET', '/metrics', fields={}, connection=service.unix()))


def secret_given_twice_or_too_long_is_refused_and_not_shown():  # M10
    with tempfile.TemporaryDirectory() as folder:
        config, secret = f'{folder}/weir.yaml', f'{folder}/secret'

        def refused(rules, line, *words):
            for path, text in ((config, rules), (secret, line)):
                with open(path, 'w', encoding='utf-8') as file:
                    file.write(text)
                os.chmod(path, 0o600)
            run = weir('serve', '--config', config, '--listen', f'unix:{folder}/s', *(word.replace('FILE', secret) for word in words))
            assert run.returncode == 2 and run.stderr.count('\n') == 1 and 'hunter2' not in run.stderr, run
            return run.stderr

        both = 'rules: [{name: r, limit: 1/s}]\nadmission: {secret: hunter2, store: {nodes: 2, url: "redis://:hunter2@127.0.0.1:1"}}\n'
        assert 'admission: secret is set here' in refused(both, SECRET, '--secret-file', 'FILE')
        assert 'store: url is set here' in refused(both, 'redis://:hunter2@127.0.0.1', '--store-file', 'FILE')
        assert 'at most 127 characters' in refused(RULES % 5, 'hunter2' * 30, '--secret-file', 'FILE')
        assert '16 to 255' in refused(RULES % 5, 'hunter2', '--secret-file', 'FILE')
        assert 'visible ASCII' in refused(RULES % 5, 'hunter2 ' * 9, '--secret-file', 'FILE')
        assert 'the URL of the store' in refused(SHARED, 'http://me:hunter2@127.0.0.1', '--store-file', 'FILE')
        os.unlink(secret)
        assert 'there is no store' in refused(SHARED, SECRET, '--token-file', 'FILE')


def world_readable_file_with_a_secret_is_reported():  # V10
    told = 'every user can read the secrets of this file'
    with Daemon('rules: [{name: r, limit: 1/s}]\nadmission: {secret: hunter2}\n') as daemon:
        assert told in daemon.lines() and 'hunter2' not in daemon.lines()
        os.chmod(daemon.config, 0o640)
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for('serve: reloaded')
        assert daemon.lines().count(told) == 1
    with Daemon() as daemon:
        assert told not in daemon.lines()


def files_named_in_the_systemd_unit_are_installed_or_documented():
    text, guide = _with_all_credentials(), _source('docs/guide/production.md')
    named = set(re.findall(r'/etc/weir/\w+', text)) - {'/etc/weir/weir'}
    assert named == {'/etc/weir/secret', '/etc/weir/token', '/etc/weir/store'}
    for path in sorted(named):
        assert f'`{path}`' in guide or path + ')`' in guide, path
    for option in re.findall(r'--[a-z-]+', ' '.join(value for key, value in _settings() if key.startswith('Exec'))):
        assert f'.It Fl {option[1:]} ' in _source('man/weir-serve.1') or option == '--config', option
    assert re.search(r"executable\('weir',.*install: true\)", _source('meson.build'), re.S)


def systemd_verifies_the_unit_and_its_sandbox():
    if shutil.which('systemd-analyze') is None:
        raise cases.missing('systemd-analyze')
    with tempfile.TemporaryDirectory() as folder:
        for name in ('weir.service', 'weir.socket'):
            with open(f'{folder}/{name}', 'w', encoding='utf-8') as file:
                file.write(_source(f'contrib/systemd/{name}').replace('=weir ', f'={os.path.abspath(sys.argv[1])} '))
        for words in (['verify', '--man=no'], ['security', '--offline=true', '--threshold=10']):
            units = [f'{folder}/weir.service'] + ([f'{folder}/weir.socket'] if words[0] == 'verify' else [])
            run = subprocess.run(['systemd-analyze', *words, *units], capture_output=True, text=True, timeout=60, env={**os.environ, 'SYSTEMD_PAGER': ''})
            assert run.returncode == 0 and (words[0] == 'security' or run.stderr == ''), (words, run)


if __name__ == '__main__':
    cases.main()
