#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir crawl before its first request: options, and errors about mistakes. The first argument is
the program."""
import fcntl
import os
import pty
import subprocess
import sys
import tempfile

import cases
from program import weir


def _crawl(*words, **more):
    """Runs weir crawl in an empty folder and returns (run, names of the files left there). No
    server is reached: the URLs are loopback addresses."""
    with tempfile.TemporaryDirectory() as folder:
        run = weir('crawl', *words, cwd=folder, **more)
        return run, sorted(os.listdir(folder))


def _mistake(*words, status=2, files=(), **more):
    """Returns the one line that weir crawl prints about a mistake. Checks that no file other than
    `files` is left."""
    run, left = _crawl(*words, **more)
    assert run.returncode == status, (words, run)
    assert run.stdout == '' and run.stderr.count('\n') == 1 and run.stderr.startswith('weir crawl: '), (words, run)
    assert left == list(files), (words, left)
    return run.stderr


def crawl_help_has_examples():
    text = weir('crawl', '--help').stdout
    assert 'weir crawl example.org' in text and '--resume' in text and '(default crawl.jsonl)' in text
    text = weir('crawl', '--help', 'all').stdout
    assert '(default weir.db)' in text and '--depth N' in text


def unknown_crawl_options_and_values_are_refused_with_a_hint():
    assert 'did you mean --depth?' in _mistake('--dept', '3', 'a.example')
    assert 'host, domain, prefix, any' in _mistake('--scope', 'site', 'a.example')
    assert '--max-time' in _mistake('--max-time', 'soon', 'a.example')
    assert '--global-rate' in _mistake('--global-rate', 'slow', 'a.example')
    assert _mistake('--max-rate', 'slow', 'a.example').startswith('weir crawl: --max-rate: number "slow": ')
    assert 'a URL or a mail address' in _mistake('--contact', 'me', 'a.example')
    assert 'has a back-reference' in _mistake('--exclude', 're:(a)\\1', 'a.example')
    assert '--include' in _mistake('--include', '', 'a.example')
    assert 'longer than' in _mistake('--user-agent', 'x' * 2000, 'a.example')
    for address in ('nowhere', 'a.example:80', '127.0.0.1:99999', '[::1', 'unix:', 'unix:/' + 'x' * 200):
        assert _mistake('--listen', address, 'a.example').startswith('weir crawl: --listen: listening address'), address
    for option, value in (('--statuses', '403=never'), ('--proxy', 'nowhere'), ('--header', 's3cret'),
                          ('--header', 'A b: s3cret'), ('--ca-file', '/nonexistent/ca'), ('--ca-file', '/')):
        line = _mistake(option, value, 'a.example')
        assert line.startswith(f'weir crawl: {option}: ') and 's3cret' not in line, line


def contradictory_crawl_options_are_refused():
    assert '--resume' in _mistake('--job', '3', 'a.example')
    assert '--report' in _mistake('--json', '--out', '-', 'a.example')
    assert '--report - and --out -' in _mistake('--report', '-', '--out', '-', 'a.example')
    assert '--json and --report -' in _mistake('--report', '-', '--json', 'a.example')
    assert 'name a file' in _mistake('--state', '-', 'a.example')
    assert 'name a file' in _mistake('--warc', '-', 'a.example')
    assert '--out is empty' in _mistake('--out', '', 'a.example')


def unknown_database_url_is_refused_without_its_password():
    url = 'mysql://me:s3cret@db/crawl'
    line = _mistake('--state', url, 'a.example')
    assert 's3cret' not in line and 'use postgres://USER@HOST/DATABASE, or the name of a file' in line, line
    for words in (('jobs', 'list'), ('hosts', 'list'), ('why', 'a.example'), ('report',), ('fetch', 'a.example'),
                  ('warm', 'a.example'), ('serve', '--config', '/dev/null')):
        run = weir(*words, '--state', url)
        assert run.returncode == 2 and run.stderr.count('\n') == 1 and 's3cret' not in run.stderr, run
        assert '--state: ' in run.stderr and 'the name of a file' in run.stderr, run
    run = weir('report', url)
    assert run.returncode == 2 and 's3cret' not in run.stderr and 'use postgres://' in run.stderr, run
    run = weir('fetch', 'a.example', '--state', '/nonexistent/f')
    assert run.returncode == 1 and '/nonexistent/f cannot be created: its folder does not exist' in run.stderr, run
    assert 'from 1s to 1d' in _mistake('--lease', '1ms', 'a.example')


def invalid_seed_url_is_refused_before_the_crawl_starts():
    assert '"ftp://x/" is not a valid seed URL: its scheme' in _mistake('a.example', 'ftp://x/')
    line = _mistake('https://user:s3cret@a.example/')
    assert 's3cret' not in line and '--header' in line, line
    assert '--allow-private allows that' in _mistake('http://localhost:8080/')


def crawl_without_a_seed_says_how_to_give_one():
    line = _mistake()
    assert 'no URL in standard input' in line and 'weir crawl example.org' in line, line
    screen, terminal = pty.openpty()
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([os.path.abspath(sys.argv[1]), 'crawl'], stdin=terminal, capture_output=True, text=True,
                             timeout=60, cwd=folder)
    os.close(terminal)
    os.close(screen)
    assert run.returncode == 2 and 'weir crawl example.org' in run.stderr and run.stderr.count('\n') == 1, run


def invalid_lines_of_a_seeds_file_are_reported_by_number():
    with tempfile.TemporaryDirectory() as folder:
        path = f'{folder}/seeds'
        with open(path, 'w', encoding='utf-8') as file:
            file.write('# none\n\nftp://x/\nhttps://u:s3cret@a.example/\n')
        run, left = _crawl('--seeds-file', path)
    assert run.returncode == 2 and left == [] and 's3cret' not in run.stderr, (run, left)
    lines = run.stderr.splitlines()
    assert len(lines) == 3 and ', line 3: "ftp://x/"' in lines[0] and ', line 4: ' in lines[1], lines
    assert 'there is no URL in' in lines[2], lines


def missing_seeds_file_is_reported():
    assert 'cannot read /nonexistent/seeds' in _mistake('--seeds-file', '/nonexistent/seeds')


def unwritable_files_are_reported_before_the_crawl_starts():
    url = 'a.example'
    for option in ('--report', '--state', '--out', '--log'):
        line = _mistake(option, '/nonexistent/x', url, status=1)
        assert f'{option}: /nonexistent/x cannot be created: its folder does not exist' in line, line
        assert f'{option}: / is a folder' in _mistake(option, '/', url, status=1)
    for option in ('--warc', '--save-bodies'):
        line = _mistake(option, '/nonexistent/x', url, status=1)
        assert f'{option}: /nonexistent/x cannot be created: its folder does not exist' in line, line
    assert 'is not a folder' in _mistake('--save-bodies', '/dev/null', url, status=1)


def locked_output_file_leaves_no_new_files():
    with tempfile.TemporaryDirectory() as folder:
        with open(f'{folder}/crawl.jsonl', 'w', encoding='utf-8') as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            run = weir('crawl', 'a.example', '--report', 'r', '--log', 'l', cwd=folder)
            assert run.returncode == 1 and 'another process' in run.stderr and run.stderr.count('\n') == 1, run
        assert os.listdir(folder) == ['crawl.jsonl'] and os.path.getsize(f'{folder}/crawl.jsonl') == 0


def existing_output_does_not_hide_another_mistake():
    with tempfile.TemporaryDirectory() as folder:
        with open(f'{folder}/crawl.jsonl', 'w', encoding='utf-8') as file:
            file.write('{"mine": true}\n')
        for words in (['--header', 'x', 'a.example'], ['ftp://x/'], ['--seeds-file', 'none'], ['--log', '/none/l', 'a.example'],
                      ['--ca-file', 'none', 'a.example'], ['--statuses', 'x', 'a.example'], ['--depth', 'x', 'a.example']):
            run = weir('crawl', *words, cwd=folder)
            assert 'exists already' not in run.stderr and run.stderr.count('\n') == 1, run
        with open(f'{folder}/weir.db', 'w', encoding='utf-8') as file:
            file.write('my notes\n' * 200)
        run = weir('crawl', 'a.example', cwd=folder)
        assert run.returncode == 1 and 'not a state file' in run.stderr and run.stderr.count('\n') == 1, run


def existing_output_is_refused_without_append():
    with tempfile.TemporaryDirectory() as folder:
        with open(f'{folder}/crawl.jsonl', 'w', encoding='utf-8') as file:
            file.write('{"mine": true}\n')
        run = weir('crawl', 'a.example', cwd=folder)
        assert run.returncode == 2 and '--append' in run.stderr and run.stderr.count('\n') == 1, run
        with open(f'{folder}/crawl.jsonl', encoding='utf-8') as file:
            assert file.read() == '{"mine": true}\n'
        assert os.listdir(folder) == ['crawl.jsonl']


def resume_without_a_state_file_is_refused():
    line = _mistake('--resume')
    assert 'weir.db' in line and 'without --resume' in line, line
    assert 'other.db' in _mistake('--resume', '--state', 'other.db')


def foreign_file_named_as_state_file_is_not_changed():
    with tempfile.TemporaryDirectory() as folder:
        with open(f'{folder}/weir.db', 'w', encoding='utf-8') as file:
            file.write('my notes\n' * 200)
        for words in (['--resume'], ['a.example']):
            run = weir('crawl', *words, cwd=folder)
            assert run.returncode == 1 and run.stderr.count('\n') == 1 and 'weir.db' in run.stderr, run
        with open(f'{folder}/weir.db', encoding='utf-8') as file:
            assert file.read() == 'my notes\n' * 200


def failure_threshold_is_read_from_the_environment():
    for name in ('WEIR_JOB_FAILURE_THRESHOLD', 'BBB_JOB_FAILURE_THRESHOLD'):
        assert name in _mistake('a.example', env={**os.environ, name: 'many'})
        assert '(default 7)' in weir('crawl', '--help', 'all', env={**os.environ, name: '7'}).stdout
    both = {**os.environ, 'WEIR_JOB_FAILURE_THRESHOLD': '8', 'BBB_JOB_FAILURE_THRESHOLD': '9'}
    assert '(default 8)' in weir('crawl', '--help', 'all', env=both).stdout


if __name__ == '__main__':
    cases.main()
