#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir crawl that is stopped and resumed, against a real nginx. The first argument is the program.
"""
import collections
import http.server
import json
import os
import signal
import sqlite3
import subprocess
import threading
import time

from site_rig import PAGES, PATIENCE_S, SLACK_S, Door, Folder, Held, all_of, cases, free_port, interrupt, site

STEADY = ('--pace', 'strict', '--interval', '40ms', '--max-rate', '100')
FAST = ('--pace', 'unlimited')


def _counts(nginx):
    return collections.Counter(path for _, _, path, *_ in nginx.log())


def interrupted_crawl_resumes_and_fetches_every_page_once():
    with site() as nginx, Held(nginx, 10) as door, Folder() as folder:
        process = door.begin(folder, *STEADY)
        status, out, errors = door.stop(process)
        assert status == 3 and 'weir crawl --resume' in errors, (status, errors)
        assert out.startswith('stopped after '), out
        before = set(folder.by_url())
        assert 10 <= len(before) < PAGES, before
        run = folder.crawl('--resume', '--json')
        assert run.returncode == 0, run
        assert set(folder.by_url()) == all_of(door), set(folder.by_url()) ^ all_of(door)
        report = json.loads(run.stdout)
        assert report['job'] == 1 and report['accepted'] == PAGES + 1 and report['pages'] == PAGES + 1 - len(before), report
        assert set(_counts(nginx).values()) == {1}, _counts(nginx)  # the requests in flight were finished
        assert min(door.gaps()) >= 0.04 - SLACK_S, 'the interval is kept across the resume'


def sigterm_and_sighup_stop_a_crawl_gracefully():
    for number in (signal.SIGTERM, signal.SIGHUP):
        with site() as nginx, Held(nginx, 5) as door, Folder() as folder:
            assert door.stop(door.begin(folder, *STEADY), number)[0] == 3
            assert folder.crawl('--resume').returncode == 0 and set(folder.by_url()) == all_of(door)


def second_interrupt_stops_at_once_and_requeues_requests_in_flight():
    with site() as nginx, Held(nginx, 5) as door, Folder() as folder:
        process = door.begin(folder, *FAST, '--timeout', '1h')
        process.send_signal(signal.SIGINT)
        while 'finishing the requests in flight' not in process.stderr.readline():
            assert process.poll() is None, 'the crawl has ended'
        time.sleep(0.5)
        assert process.poll() is None, 'it waits for the requests in flight'
        status, _, errors = interrupt(process)
        assert status == 3, (status, errors)
        assert len(folder.by_url()) == 5
        with sqlite3.connect(folder.path('weir.db')) as store:
            assert store.execute('pragma integrity_check').fetchone() == ('ok',)


def third_interrupt_kills_the_crawl_without_losing_pages():
    with site() as nginx, Held(nginx, 5) as door, Folder() as folder:
        process = door.begin(folder, *FAST)
        os.kill(process.pid, signal.SIGSTOP)  # all three signals are pending when the process continues
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(process.pid, number)
        os.kill(process.pid, signal.SIGCONT)
        assert process.wait(timeout=PATIENCE_S) < 0
        process.communicate()
        door.let_on()
        run = folder.crawl('--resume')
        assert run.returncode == 0 and set(folder.by_url()) == all_of(door), run


def killed_crawl_can_be_resumed():
    with site() as nginx, Held(nginx, 8) as door, Folder() as folder:
        process = door.begin(folder, *STEADY)
        process.kill()
        process.communicate()
        door.let_on()
        run = folder.crawl('--resume')
        assert run.returncode == 0 and set(folder.by_url()) == all_of(door), run
        assert max(_counts(nginx).values()) <= 2 and sum(_counts(nginx).values()) <= PAGES + 2 + 8, _counts(nginx)


def crawl_that_is_out_of_time_can_be_resumed():
    with site() as nginx, Folder() as folder:
        run = folder.crawl(*STEADY, '--max-time', '500ms', nginx.url)
        assert run.returncode == 3 and 'still queued' in run.stdout, run
        run = folder.crawl('--resume', '--max-time', '0')
        assert run.returncode == 0 and set(folder.by_url()) == all_of(nginx), run


def resumed_job_keeps_its_original_options():
    with site() as nginx, Held(nginx, 5) as door, Folder() as folder:
        process = door.begin(folder, *STEADY, '--out', 'mine', '--exclude', '*/p1?.html', '--state', 's.db', '--user-agent',
                             'tester/2', out='mine')
        status, _, errors = door.stop(process)
        assert status == 3 and '--resume --state s.db' in errors, errors
        assert folder.crawl('--resume', '--state', 's.db').returncode == 0
        assert sorted(os.listdir(folder.name)) == ['mine', 's.db'], os.listdir(folder.name)
        assert {agent for *_, agent, _ in nginx.log()} == {'tester/2'}
        lines = folder.by_url('mine')
        assert lines and not any('/p1' in url and url[-7:-6] == '1' for url in lines), lines


def resume_keeps_lines_of_a_later_job_in_the_same_file():
    with site() as nginx, Folder() as folder:
        assert folder.crawl(*STEADY, '--max-time', '500ms', nginx.url).returncode == 3
        before = len(folder.lines())
        assert folder.crawl(*FAST, '--append', '--depth', '1', f'{nginx.url}/p1.html').returncode == 0
        later = folder.lines()[before:]
        assert folder.crawl('--resume', '--max-time', '0').returncode == 0
        lines = folder.lines()
        assert later and lines[before:before + len(later)] == later, lines
        ours = lines[:before] + lines[before + len(later):]
        assert sorted(line['url'] for line in ours) == sorted(all_of(nginx)), ours


def failure_of_an_earlier_run_counts_in_the_status():
    home = '<a href="/missing"></a><a href="p0.html">pages</a>'
    with site(**{'index.html': home}) as nginx, Held(nginx, 6) as door, Folder() as folder:
        assert door.stop(door.begin(folder, *STEADY))[0] == 3
        assert any(line['status'] == 404 for line in folder.lines())
        assert folder.crawl('--resume').returncode == 1


def output_file_of_another_running_crawl_is_refused():
    with site() as nginx, Held(nginx, 2) as door, Folder() as folder:
        process = door.begin(folder, *STEADY)
        run = folder.crawl(*FAST, '--append', '--state', 'two.db', nginx.url)
        assert run.returncode == 1 and 'another process' in run.stderr and run.stderr.count('\n') == 1, run
        status, _, _ = door.stop(process)
        assert status == 3 and folder.by_url()


def crawl_files_with_the_same_name_are_refused():
    with Folder() as folder:
        for words in (('--out', 'a', '--report', 'a'), ('--state', 'a', '--log', './a'), ('--state', 'weir.db', '--out', 'weir.db')):
            folder.write('a', '')
            run = folder.crawl(*words, 'http://127.0.0.1:9/')
            assert run.returncode == 2 and 'same file' in run.stderr and run.stderr.count('\n') == 1, run


def first_seeds_of_a_slow_list_are_fetched_before_the_last_arrive():
    with site() as nginx, Folder() as folder:
        process = subprocess.Popen(folder.command(*FAST, '--depth', '1'), cwd=folder.name, stdin=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
        process.stdin.write(f'{nginx.url}/p0.html\n{nginx.url}/p1.html\n')
        process.stdin.flush()
        folder.await_lines(2)
        process.stdin.close()
        assert process.wait(timeout=PATIENCE_S) == 0


def finished_job_is_not_resumed():
    with site() as nginx, Folder() as folder:
        assert folder.crawl(*FAST, nginx.url).returncode == 0
        for words in ((), ('--job', '1'), ('--job', '7')):
            run = folder.crawl('--resume', *words)
            assert run.returncode == 2 and run.stderr.count('\n') == 1 and run.stdout == '', run


def secrets_are_not_stored_and_required_again_on_resume():
    with site() as nginx, Held(nginx, 5) as door, Folder() as folder:
        assert door.stop(door.begin(folder, *STEADY, '--header', 'X-Test: s3cret'))[0] == 3
        for name in os.listdir(folder.name):
            with open(folder.path(name), 'rb') as file:
                assert b's3cret' not in file.read(), name
        run = folder.crawl('--resume')
        assert run.returncode == 2 and '--header' in run.stderr and run.stderr.count('\n') == 1, run
        run = folder.crawl('--resume', '--header', 'X-Test: s3cret')
        assert run.returncode == 0 and set(folder.by_url()) == all_of(door), run


def unread_seeds_are_required_again_on_resume():
    with site() as nginx, Folder() as folder:
        os.mkfifo(folder.path('seeds'))
        process = folder.begin(*FAST, '--seeds-file', 'seeds')
        with open(folder.path('seeds'), 'w', encoding='utf-8') as pipe:
            pipe.write(f'{nginx.url}/p0.html\n')
            pipe.flush()
            folder.await_lines(PAGES)
            status, _, errors = interrupt(process)
        assert status == 3, (status, errors)
        os.unlink(folder.path('seeds'))
        folder.write('seeds', f'{nginx.url}/p0.html\n{nginx.url}/\n')
        run = folder.crawl('--resume')
        assert run.returncode == 0 and set(folder.by_url()) == all_of(nginx), run


def unread_seeds_of_a_pipe_are_named_on_resume():
    with site() as nginx, Folder() as folder:
        process = subprocess.Popen(folder.command(*FAST, '--depth', '1'), cwd=folder.name, stdin=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        process.stdin.write(f'{nginx.url}/p0.html\n')
        process.stdin.flush()
        folder.await_lines(5)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE_S) == 3 and 'not all were read' in process.stderr.read()
        process.stdin.close()
        process.stderr.close()
        run = folder.crawl('--resume')
        assert run.returncode == 2 and run.stderr.count('\n') == 1 and run.stdout == '', run
        assert 'job 1 stopped before it had read all its seeds' in run.stderr and 'standard input' in run.stderr, run
        assert '--seeds-file /dev/null' in run.stderr, run
        process = folder.crawl('--resume', '--max-pages', '7', input=f'{nginx.url}/p0.html\n{nginx.url}/p1.html\n')
        assert process.returncode == 0 and f'{nginx.url}/p1.html' in folder.by_url(), process


def crawl_resumes_with_the_stored_seeds_if_told_to():
    with site() as nginx, Folder() as folder:
        os.mkfifo(folder.path('seeds'))
        process = folder.begin(*FAST, '--depth', '1', '--seeds-file', 'seeds')
        with open(folder.path('seeds'), 'w', encoding='utf-8') as pipe:
            pipe.write(f'{nginx.url}/p0.html\n')
            pipe.flush()
            folder.await_lines(5)
            assert interrupt(process)[0] == 3
        os.unlink(folder.path('seeds'))
        run = folder.crawl('--resume')
        assert run.returncode == 2 and 'job 1 stopped before it had read all its seeds' in run.stderr and run.stderr.count('\n') == 1, run
        run = folder.crawl('--resume', '--seeds-file', '/dev/null')
        assert run.returncode == 0 and len(folder.by_url()) == 5, run
        assert folder.crawl('--resume').returncode == 2, 'it is complete'


class Quiet(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def failed_crawl_resumes_when_the_network_is_back():
    with Folder() as folder:
        port = free_port()
        folder.write('seeds', ''.join(f'http://127.0.0.1:{port}/{i}\n' for i in range(30)))
        run = folder.crawl(*FAST, '--ignore-robots', '--attempts', '1', '--failure-threshold', '5', '--concurrency', '1',
                           '--seeds-file', 'seeds')
        assert run.returncode == 1 and run.stdout.startswith('failed') and 'weir crawl --resume' in run.stderr, run
        failed = len(folder.by_url())
        assert failed < 30, failed
        with http.server.ThreadingHTTPServer(('127.0.0.1', port), Quiet) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            run = folder.crawl('--resume', '--json')
            server.shutdown()
        report = json.loads(run.stdout)
        assert report['end'] == 'completed' and report['job'] == 1 and report['fetched'] == 30 - failed, report
        assert run.returncode == 1 and len(folder.by_url()) == 30, run  # pages that failed keep their lines
        assert folder.crawl('--resume').returncode == 2


def empty_output_file_does_not_prevent_a_crawl():
    with site() as nginx, Folder() as folder:
        folder.write('crawl.jsonl', '')
        run = folder.crawl(*FAST, nginx.url)
        assert run.returncode == 0 and set(folder.by_url()) == all_of(nginx), run


def host_knowledge_of_a_job_is_used_by_the_next():
    with site(**{'robots.txt': 'User-agent: *\nCrawl-delay: 1\n'}) as nginx, Door(nginx) as door, Folder() as folder:
        assert folder.crawl('--max-pages', '2', door.url).returncode == 0
        assert folder.crawl('--max-pages', '2', '--out', 'o', door.url).returncode == 0
        assert _counts(nginx)['/robots.txt'] == 1, _counts(nginx)
        assert min(door.gaps()) >= 1 - SLACK_S, door.gaps()


if __name__ == '__main__':
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup the crawls would ignore it, too
    cases.main()
