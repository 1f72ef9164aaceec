#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir report: what it shows of a state file, whichever program wrote the file. Arguments: the
program, and the source folder."""
import contextlib
import fcntl
import json
import os
import pty
import sqlite3
import struct
import subprocess
import sys
import tempfile
import termios

import cases
from page import harmless
from program import refusal, weir

HOSTILE = '</title></style></svg><script>alert(1)</script><img src=x onerror=alert(1)>"\'&amp;<!-- \x1b]0;x\x07 \x9b31m'


@contextlib.contextmanager
def _state(*reports):
    """Makes a folder whose weir.db has these reports of job 1, the first as run 1, the second as
    run 2, and so on."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'weir.db')
        with open(os.path.join(sys.argv[2], 'tests', 'store', 'data', 'v4.sql'), encoding='utf-8') as file:
            script = file.read()
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.executescript(script)
            db.execute('DELETE FROM reports')
            for run, report in enumerate(reports, 1):
                text = report if isinstance(report, str) else json.dumps(report)
                db.execute('INSERT INTO reports VALUES (1, ?, ?, ?)', (run, 1790000000000 + run, text))
            db.commit()
        os.chmod(path, 0o600)
        yield folder


def _host(name, **more):
    return {'host': name, 'requests': 12, 'ok': 10, 'rejected': 1, 'failed': 1, 'reached_per_s': 2.5, 'allowed_per_s': None,
            'closest_s': 0.25, 'waited_s': {'pace': 3.5, 'robots': 0.5}, 'starts': [None, 4, 6, 2], **more}


def _report(**more):
    return {'job': 1, 'end': 'completed', 'why': None, 'out': 'crawl.jsonl', 'ended_at': '2026-11-15T23:00:00Z', 'seconds': 3.5,
            'pages': 10, 'fetched': 9, 'failed': 1, 'requests': 12, 'bytes': 12345, 'failed_url': 'http://a.example/x',
            'failed_why': 'answered 404', 'statuses': {'200': 9, '404': 1, 'none': 2}, 'step_s': 1,
            'waited_s': {'pace': 3.5, 'robots': 0.5}, 'hosts': [_host('a.example')], 'hosts_left_out': 0, **more}


def report_prints_the_last_run_and_others_on_request():
    with _state(_report(end='stopped', pages=3), _report()) as folder:
        run = weir('report', cwd=folder)
        assert run.returncode == 0 and run.stderr == '', run
        assert run.stdout.startswith('job 1, run 2, ended 2026-11-15T23:00:00Z\ncompleted after 3.5 s: 10 pages, '), run.stdout
        assert 'failed: http://a.example/x: answered 404\n' in run.stdout and 'lines: crawl.jsonl\n' in run.stdout
        assert any(line.split()[:5] == ['a.example', '12', '10', '1', '1'] for line in run.stdout.splitlines()), run.stdout
        assert 'pace 3.5 s, robots 500 ms' in run.stdout and '2.5/s      any   250 ms' in run.stdout, run.stdout
        run = weir('report', '--run', '1', '1', cwd=folder)
        assert run.returncode == 0 and 'stopped after 3.5 s: 3 pages' in run.stdout, run


def _on_terminal(columns, folder):
    """Returns the lines that weir report prints on a terminal of this width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('4H', 24, columns, 0, 0))
    with subprocess.Popen([os.path.abspath(sys.argv[1]), 'report'], cwd=folder, stdin=subprocess.DEVNULL, stdout=theirs) as run:
        os.close(theirs)
        text = b''
        with contextlib.suppress(OSError):  # OSError: the other end of the terminal was closed
            while piece := os.read(ours, 65536):
                text += piece
    os.close(ours)
    assert run.returncode == 0, run
    return text.decode().splitlines()


def report_table_fits_the_terminal_and_is_full_in_a_file():
    """Narrow terminals omit the least important columns first; host name and waiting times are
    always shown."""
    waited = {'robots_delay': 86400, 'rate_limit_reset': 7200, 'retry_after': 3600}
    name = 'a-rather-long-name-of-a-host.some.where.example'
    hosts = [_host(name, requests=1234567, waited_s=waited), _host('b.example')]
    with _state(_report(hosts=hosts)) as folder:
        whole = weir('report', cwd=folder).stdout.splitlines()
        for columns in (40, 60, 80, 100, 120, 200):
            lines = _on_terminal(columns, folder)
            head, first, second = lines[-3:]
            assert max(map(len, lines[-3:])) <= columns, (columns, lines[-3:])
            assert head.startswith('host ') and 'waited for' in head and '... ' in first and 'robots_delay' in first, lines
            assert second.startswith('b.example ') and 'pace 3.5 s' in second, lines
            assert columns < 80 or all(word in head for word in ('requests', 'rejected', 'failed', 'reached')), head
        # 200 columns are enough for everything
        assert lines == whole and 'retry_after' in first and 'closest' in head, lines


def report_takes_the_state_file_as_an_operand():
    with _state(_report()) as folder:
        os.rename(os.path.join(folder, 'weir.db'), os.path.join(folder, 'night.db'))
        for words in (['night.db'], ['night.db', '1'], ['1', 'night.db'], ['1', '--state', 'night.db']):
            run = weir('report', *words, cwd=folder)
            assert run.returncode == 0 and run.stdout.startswith('job 1, run 1, ended'), (words, run)
        run = weir('report', 'nowhere.db', cwd=folder)
        assert run.returncode == 2 and 'there is no state file nowhere.db' in run.stderr, run
    for words in (['a.db', 'b.db'], ['1', '2']):
        assert f'unexpected "{words[1]}"' in refusal('report', *words), words


def report_json_is_the_stored_report():
    with _state(_report()) as folder:
        run = weir('report', '--json', '--state', 'weir.db', '1', cwd=folder)
        assert run.returncode == 0 and json.loads(run.stdout) == _report(), run


def report_page_has_charts_of_pace_waits_and_statuses():
    with _state(_report()) as folder:
        run = weir('report', '--html', 'r.html', cwd=folder)
        assert run.returncode == 0 and run.stdout == run.stderr == '', run
        with open(os.path.join(folder, 'r.html'), encoding='utf-8') as file:
            page = harmless(file.read())
        assert page.count('figure') == 1 and page.count('rect') == 5, page.tags
        assert {'Statuses', 'Waiting', 'Pace over time', 'Hosts', '404', 'no answer', 'pace', 'a.example'} <= set(page.texts)
        widths = [float(attributes['width']) for name, attributes in page.tags if name == 'rect']
        assert widths == [100, 11.11, 22.22, 100, 14.29], widths
        [curve] = [attributes['d'] for name, attributes in page.tags if attributes.get('class') == 'pace']
        # the rate of the first step is unknown
        assert curve.count('M') == 1 and curve.count('L') == 5 and curve.startswith('M149.1 '), curve
        assert weir('report', '--html', '-', cwd=folder).stdout.startswith('<!DOCTYPE html>')


def report_escapes_hostile_names_on_page_and_terminal():
    """B15, J11"""
    report = _report(end=HOSTILE, why=HOSTILE, out=HOSTILE, ended_at=HOSTILE, failed_url=HOSTILE, failed_why=HOSTILE,
                     statuses={HOSTILE: 3, '200': 1}, hosts=[_host(HOSTILE), _host('x' * 5000)])
    with _state(report) as folder:
        run = weir('report', '--html', '-', cwd=folder)
        assert run.returncode == 0, run
        page = harmless(run.stdout)
        assert sum('<script>alert(1)</script><img src=x' in text for text in page.texts) >= 5, page.texts
        assert '<script' not in run.stdout and '<img' not in run.stdout
        for run in (run, weir('report', cwd=folder)):
            assert all(c == '\n' or c >= ' ' and not '\x7f' <= c <= '\x9f' for c in run.stdout), run.stdout


def damaged_reports_are_refused_or_clamped():
    for broken in ('{', '[]', 'null', '{"end": 3}', '[' * 100000, '{"end": "\\ud800"}'):
        with _state(broken) as folder:
            run = weir('report', cwd=folder)
            assert run.returncode == 1 and 'it is damaged' in run.stderr and run.stderr.count('\n') == 1, (broken[:20], run)
    odd = _report(pages=-5, seconds=1e300, bytes='many', step_s=-1, hosts=[7, None, {'starts': [1e99, -3, 'x']}],
                  statuses={'200': -1, '99999': 4, 'x': 1}, waited_s={'pace': -1, 'robots': 1e300}, hosts_left_out=[])
    with _state(odd) as folder:
        for words in ((), ('--html', '-')):
            run = weir('report', *words, cwd=folder)
            assert run.returncode == 0 and run.stdout, run
    many = _report(hosts=[_host(f'h{i}.example') for i in range(1500)])
    with _state(many) as folder:
        run = weir('report', cwd=folder)
        assert '… and 1480 hosts more' in run.stdout, run.stdout
        assert harmless(weir('report', '--html', '-', cwd=folder).stdout).count('figure') == 12


def missing_report_or_state_file_is_reported():
    with _state() as folder:
        run = weir('report', cwd=folder)
        assert run.returncode == 1 and 'weir.db has no report' in run.stderr and run.stdout == '', run
        run = weir('report', '7', cwd=folder)
        assert run.returncode == 1 and 'no report of job 7' in run.stderr, run
        run = weir('report', '--state', 'other.db', cwd=folder)
        assert run.returncode == 2 and 'no state file other.db' in run.stderr, run
        assert not os.path.exists(os.path.join(folder, 'other.db'))
        run = weir('report', '--state', '.', cwd=folder)
        assert run.returncode == 1 and run.stderr.count('\n') == 1, run
    with _state(_report()) as folder:
        run = weir('report', '--html', 'no/such/folder', cwd=folder)
        assert run.returncode == 1 and 'cannot write' in run.stderr, run
        run = weir('report', '--html', '/dev/full', cwd=folder)
        assert run.returncode == 1 and 'cannot write' in run.stderr, run


def report_refuses_contradictory_options_with_a_hint():
    assert 'give the job' in refusal('report', '--run', '2')
    assert '--json and --html' in refusal('report', '--json', '--html', '-')


if __name__ == '__main__':
    cases.main()
