#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir crawl --max-time with hosts that never finish their responses: the end, the report and the
stored state. That the program ends at all is the proof. The first argument is the program."""
import json
import os
import signal
import socket
import subprocess
import sys
import threading

from site_rig import Folder, cases, read_head

PATIENCE_S = 170  # enough for the time limit and the grace period
LIMIT = 'the time limit was reached (--max-time)'


class Keeps:
    """Serves a first page with ten links and never finishes the others, or only the path
    `says_nothing_of`."""

    def __init__(self, says_nothing_of=None):
        self.silent_of = says_nothing_of
        self.is_over = threading.Event()

    def __enter__(self):
        self.socket = socket.create_server(('127.0.0.1', 0))
        self.url = f'http://127.0.0.1:{self.socket.getsockname()[1]}'
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.socket.close()

    def accept(self):
        try:
            while True:
                threading.Thread(target=self.serve, args=(self.socket.accept()[0],), daemon=True).start()
        except OSError:
            pass  # the listening socket was closed

    def serve(self, connection):
        with connection, connection.makefile('rb') as file:
            while True:
                head = read_head(file)
                if not head:
                    return
                path = head[0].split()[1].decode()
                if path == self.silent_of or (self.silent_of is None and path not in ('/', '/robots.txt')):
                    connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 10000\r\n\r\nx')
                    self.is_over.wait()
                    return
                body = b''.join(b'<a href=/%d></a>' % number for number in range(10)) if path == '/' else b''
                connection.sendall(b'HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n'
                                   % (b'404 None' if path == '/robots.txt' else b'200 OK', len(body)) + body)


def _weir(folder, *words):
    run = subprocess.run([os.path.abspath(sys.argv[1]), *words], cwd=folder.name, capture_output=True, text=True,
                         timeout=PATIENCE_S, stdin=subprocess.DEVNULL, check=True)
    return run.stdout


def _assert_kept(folder, server):
    """Checks that the stored state names the time limit as the reason."""
    report = json.loads(folder.read('r.json'))
    assert report['end'] == 'budget' and report['why'] == LIMIT, report
    waited = report['hosts'][0]['waited_s']
    assert waited.get('job_limit', 0) > 0 and 'paused' not in waited, waited
    why = json.loads(_weir(folder, 'why', '--json', f'{server.url}/9'))
    assert 'job_limit' in [bound['reason'] for bound in why['bounds']], why
    assert why['state'] == 'queued', why
    job = json.loads(_weir(folder, 'jobs', 'show', '1', '--json'))['jobs'][0]
    assert job['why'] == LIMIT and job['status'] == 'running' and job['queued'] > 0, job
    assert LIMIT in _weir(folder, 'report'), 'the stored report names the time limit'


def _begin(folder, server):
    """Starts and stops a crawl that has fetched the first page and has the others queued."""
    process = folder.begin('--pace', 'unlimited', '--per-host', '2', '--quiet', server.url)
    folder.await_lines(1)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=PATIENCE_S) == 3
    process.communicate()


def _go_on(folder, limit_s, is_told=lambda process: None):
    """Resumes for this many seconds. Returns the output."""
    process = folder.begin('--resume', '--max-time', f'{limit_s}s', '--view', 'lines', '--report', 'r.json')
    said = []
    for line in process.stderr:
        said.append(line)
        if LIMIT in line:
            is_told(process)
    assert process.wait(timeout=PATIENCE_S) == 3, said
    process.communicate()
    return ''.join(said)


def _has_waited(folder):
    """Returns true if a request was in flight at the time limit: a slow machine takes longer to
    start."""
    hosts = json.loads(folder.read('r.json'))['hosts']
    return bool(hosts) and hosts[0]['waited_s'].get('job_limit', 0) > 0


def crawl_ends_at_its_time_limit_despite_stalled_responses():
    with Keeps() as server, Folder() as folder:
        _begin(folder, server)
        for limit_s in (2, 4, 8, 16):
            said = _go_on(folder, limit_s)
            assert f'{LIMIT}: finishing the requests in flight, for at most 30s' in said, said
            if _has_waited(folder):
                break
        _assert_kept(folder, server)
        assert [line['url'] for line in folder.lines()] == [f'{server.url}/'], folder.lines()


def _interrupt(process):
    process.send_signal(signal.SIGINT)
    for line in process.stderr:
        if 'interrupt again' in line:
            break
    process.send_signal(signal.SIGINT)


def interrupt_ends_a_crawl_that_is_finishing():
    with Keeps() as server, Folder() as folder:
        _begin(folder, server)
        for limit_s in (2, 4, 8, 16):
            _go_on(folder, limit_s, _interrupt)
            if _has_waited(folder):
                break
        _assert_kept(folder, server)


def resumed_job_no_longer_reports_its_time_limit():
    with Keeps() as server, Folder() as folder:
        _begin(folder, server)
        _go_on(folder, 1, _interrupt)
        process = folder.begin('--resume', '--max-time', '0', '--quiet')
        try:
            told = ''
            while '"live":true' not in told.replace(' ', '') and process.poll() is None:
                told = subprocess.run([os.path.abspath(sys.argv[1]), 'jobs', 'show', '1', '--json'], cwd=folder.name,
                                      capture_output=True, text=True, timeout=PATIENCE_S, check=False).stdout
            assert json.loads(told)['jobs'][0]['why'] == '', told
        finally:
            process.kill()
            process.communicate()


def endless_robots_does_not_extend_the_time_limit():
    with Keeps('/robots.txt') as server, Folder() as folder:
        run = folder.crawl('--max-time', '1s', '--quiet', server.url, timeout=PATIENCE_S)
        assert run.returncode == 3 and LIMIT in run.stderr, run


def time_limit_applies_while_seeds_are_awaited():
    with Keeps() as server, Folder() as folder:
        process = subprocess.Popen(folder.command('--max-time', '1s', '--quiet', '--seeds-file', '-'), cwd=folder.name,
                                   stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        process.stdin.write(f'{server.url}/\n')
        process.stdin.flush()  # stdin stays open
        assert process.wait(timeout=PATIENCE_S) == 3
        assert LIMIT in process.communicate()[1]


if __name__ == '__main__':
    cases.main()
