#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Mistakes of users: each gives one line with the cause, the place and a hint.

usage: test_mistakes.py WEIR
"""
import os
import signal
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]

import cases  # noqa: E402

RULES = 'rules: [{name: r, key: ip, limit: 5/m}]\n'
PATIENCE_S = 120


def _run(folder, *words):
    """Runs weir in the folder and returns (status, stderr)."""
    words = [os.path.abspath(sys.argv[1]), *words]
    run = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return run.returncode, run.stderr


def _one_line(folder, words, *parts):
    status, text = _run(folder, *words)
    assert status in (1, 2) and text.count('\n') == 1, (status, text)
    for part in parts:
        assert part in text, (part, text)


def _write(folder, name, text, mode=0o600):
    with open(f'{folder}/{name}', 'w', encoding='utf-8') as file:
        file.write(text)
    os.chmod(f'{folder}/{name}', mode)


def _place():
    """Returns a temporary folder with one file of each kind: folder, FIFO, looping symbolic link,
    socket, regular file."""
    place = tempfile.TemporaryDirectory(prefix='weir-mistakes-')
    os.mkdir(f'{place.name}/folder')
    os.mkfifo(f'{place.name}/pipe', 0o600)
    os.symlink('loop', f'{place.name}/loop')
    with socket.socket(socket.AF_UNIX) as node:
        node.bind(f'{place.name}/socket')
    _write(place.name, 'text', 'hello\n')
    _write(place.name, 'weir.yaml', RULES)
    return place


# V7: it waited forever and ignored SIGTERM
def serve_refuses_a_state_path_that_is_not_a_regular_file():
    with _place() as folder:
        serve = ('serve', '--config', 'weir.yaml', '--listen', 'unix:s', '--state')
        for name in ('pipe', 'socket', '/dev/zero', '/dev/full'):
            _one_line(folder, (*serve, name), f'--state: {name}: it is not a regular file; name another')
        _one_line(folder, (*serve, 'folder'), 'it is a folder; name a file in it')


def second_daemon_with_the_same_state_file_is_refused():
    with _place() as folder:
        words = [os.path.abspath(sys.argv[1]), 'serve', '--config', 'weir.yaml', '--state', 'keys', '--listen']
        for place in ('unix:one', 'unix:two'):
            with subprocess.Popen([*words, place], cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as daemon:
                assert 'listens' in daemon.stderr.readline()
                _one_line(folder, (*words[1:], 'unix:three'), '--state: another weir serve uses keys; stop it, or name another file')
                daemon.send_signal(signal.SIGTERM)
                assert daemon.wait(timeout=PATIENCE_S) == 0


def daemon_whose_configuration_is_a_pipe_still_obeys_sigterm():  # J13, V7
    with _place() as folder:
        with subprocess.Popen([os.path.abspath(sys.argv[1]), 'serve', '--config', 'weir.yaml', '--listen', 'unix:s'], cwd=folder,
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as daemon:
            assert 'listens' in daemon.stderr.readline()
            os.remove(f'{folder}/weir.yaml')
            os.mkfifo(f'{folder}/weir.yaml')
            daemon.send_signal(signal.SIGHUP)
            line = daemon.stderr.readline()
            assert 'Connection timed out; nothing was written to it for 10 s' in line, line
            daemon.send_signal(signal.SIGTERM)
            assert daemon.wait(timeout=PATIENCE_S) == 0


def unusable_secret_file_is_refused_with_its_name():
    with _place() as folder:
        serve = ('serve', '--config', 'weir.yaml', '--listen', 'unix:s')
        _write(folder, 'open', 'hunter2-hunter2-hunter2\n', 0o644)
        _write(folder, 'short', 'hunter2\n')
        for option in ('--secret-file', '--token-file', '--store-file'):
            for name, why in (('pipe', 'it is not a regular file; name another'), ('/dev/zero', 'it is not a regular file; name another'),
                              ('folder', 'it is a folder; name a file in it'), ('open', 'can be read by others; chmod 600')):
                _one_line(folder, (*serve, option, name), f'{option}: cannot use "{name}": ', why)
        _one_line(folder, (*serve, '--secret-file', 'short'), '--secret-file: cannot use "short": ', 'one line of 16 to 255')
        _one_line(folder, (*serve, '--store-file', 'missing'), 'cannot read "missing": there is no such file; write one')


def unusable_listen_address_is_refused_with_a_hint():
    with _place() as folder:
        serve = ('serve', '--config', 'weir.yaml')
        _one_line(folder, (*serve, '--listen', 'unix:text'), '"text": a file that is not a socket has this name; remove it')
        _one_line(folder, (*serve, '--listen', 'unix:s', '--handover', 'folder'), 'cannot listen at "folder": a file that is not a socket')
        _one_line(folder, (*serve, '--listen', 'unix:s', '--handover', 'no/h'), 'its folder does not exist; create it first')
        _one_line(folder, (*serve, '--listen', 'unix:s', '--socket-group', 'nosuch', '--socket-mode', '0660'), 'getent group')
        _one_line(folder, (*serve, '--listen', 'unix:s', '--socket-group', 'root'), 'add --socket-mode 0660')
        _one_line(folder, (*serve, '--listen', 'unix:s', '--listen-name', 'http://x'), 'write it as weir.example.org')


def config_check_reports_errors_that_serve_would_report():
    with _place() as folder:
        for text, parts in (
                ('serve: {listen: ["127.0.0.1"]}\n', ('a.yaml:1:18: listen: ', 'no port')),
                ('serve: {dashboard: "8481"}\n', ('a.yaml:1:', 'no port')),
                ('serve: {listen-name: ["weir:80"]}\n', ('a.yaml:1:', 'not the name of a host', 'without scheme, port')),
                ('serve:\n  rules: []\n', ('a.yaml:2:3', '"rules" in serve; it is a section of its own: begin its line without blanks')),
                ('rules:\n  - {name:login, key: ip}\n', ('a.yaml:2:6', 'a blank is missing after "name:"; write "key: value"')),
                ('rules:\n  - {name: a, match: {host: *.example.org}}\n', ('a.yaml:2:', 'in quotes, as "*.example.org"'))):
            _write(folder, 'a.yaml', text)
            _one_line(folder, ('config', 'check', 'a.yaml'), *parts)


def error_about_a_missing_blank_does_not_show_the_value():  # M10
    with _place() as folder:
        _write(folder, 'a.yaml', 'admission: {secret:hunter2, match: all}\n')
        status, text = _run(folder, 'config', 'check', 'a.yaml')
        assert status == 1 and 'a blank is missing after "secret:"' in text and 'hunter2' not in text, text


def unusable_ca_file_is_refused_before_the_first_request():
    with _place() as folder:
        _write(folder, 'urls', 'http://127.0.0.1:1/\n')
        for command in (('crawl', 'http://127.0.0.1:1/'), ('fetch', 'http://127.0.0.1:1/'), ('warm', 'http://127.0.0.1:1/')):
            for name, why in (('pipe', 'is not a regular file'), ('/dev/zero', 'is not a regular file'), ('folder', 'is a folder'),
                              ('text', 'has no certificate in PEM'), ('loop', 'symbolic links'), ('missing', 'check the path')):
                _one_line(folder, (*command, '--allow-private', '--ca-file', name), '--ca-file: ', name, why)


def report_to_a_pipe_without_a_reader_ends_with_an_error():  # V7: it waited forever at the end
    with _place() as folder:
        status, text = _run(folder, 'crawl', '--quiet', '--allow-private', '--report', 'pipe', '--attempts', '1', 'http://127.0.0.1:1/')
        assert status == 1 and '--report: cannot write pipe: ' in text and 'nothing reads this pipe or socket; begin with its reader' in text, text
        status, text = _run(folder, 'report', '--html', 'pipe')
        assert status == 1 and f'--html: cannot write pipe: ' in text, text


def crawl_reports_that_it_continues_without_its_dashboard():
    with _place() as folder:
        text = _run(folder, 'crawl', '--quiet', '--allow-private', '--listen', '127.0.0.1:0', '--token-file', 'folder', '--attempts', '1',
                    'http://127.0.0.1:1/')[1]
        assert 'continues without --listen: cannot use "folder": it is a folder; name a file in it' in text, text


def file_name_with_control_characters_is_printed_escaped():
    with _place() as folder:
        for evil in ('\x1b[31m', '\x9b31m', '\u202e', '\u200f', '\u2066'):
            for words in (('config', 'check', f'a{evil}b'), ('crawl', '--seeds-file', f'a{evil}b'), (f'a{evil}b',)):
                status, text = _run(folder, *words)
                assert status in (1, 2) and evil[0] not in text and 'a?' in text and text.count('\n') == 1, (words, text)
        assert 'Übung' in _run(folder, 'config', 'check', 'Übung')[1]


def resume_without_an_unfinished_job_says_so():
    with _place() as folder:
        _run(folder, 'crawl', '--quiet', '--allow-private', '--attempts', '1', 'http://127.0.0.1:1/')
        _one_line(folder, ('crawl', '--resume'), 'nothing to resume: weir.db has no unfinished job; start a new one without --resume')


cases.main()
