#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir jobs, hosts and why, during a crawl and after it, checked with nginx's log. The first
argument is the program."""
import json
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import time

from site_rig import PATIENCE_S, SLACK_S, Door, Folder, cases, interrupt, site

MANY = 3000

SLACK = 0.1
DELAY = 'User-agent: *\nDisallow: /p7.html\nCrawl-delay: 0.3\n'


def _weir(folder, *words, status=0, **more):
    run = subprocess.run([os.path.abspath(sys.argv[1]), *words], cwd=folder.name, capture_output=True, text=True,
                         timeout=PATIENCE_S, stdin=subprocess.DEVNULL, **more)
    assert run.returncode == status, run
    return run


def _told(folder, *words):
    return json.loads(_weir(folder, *words, '--json').stdout)


def _key(nginx):
    return nginx.url.removeprefix('http://')


def _log(nginx):
    """Returns [(seconds, path)] so far, without waiting; nginx.log() waits until the log no longer
    grows."""
    with open(f'{nginx.folder}/access.log', encoding='utf-8') as file:
        lines = [line.split(' ') for line in file.read().rpartition('\n')[0].splitlines()]
    return [(float(line[0]), line[3]) for line in lines]


def _arrivals(nginx):
    return sorted(at for at, _ in _log(nginx))


def _until(true, seconds=PATIENCE_S):
    end = time.time() + seconds
    while not true():
        assert time.time() < end, 'the expected state was not reached'
        time.sleep(0.02)


def _large(**more):
    """Returns a site that takes more than a minute to crawl."""
    links = ''.join(f'<a href="/many/{number}">x</a>' for number in range(MANY))
    return site('location /many { default_type text/html; return 200 "many"; }', **{'index.html': links, **more})


def _listens(folder):
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(folder.path('weir.db.sock'))
            return True
    except (FileNotFoundError, ConnectionRefusedError):
        return False


class Running:
    """A running crawl: with Running(folder, nginx, '--interval', '100ms') as crawl: …"""

    def __init__(self, folder, nginx, *words, url=None):
        self.folder, self.nginx, self.words, self.url = folder, nginx, words, url or nginx.url

    def __enter__(self):
        self.process = self.folder.begin('--quiet', *self.words, self.url)
        before = len(_log(self.nginx))
        _until(lambda: _listens(self.folder) and len(_log(self.nginx)) > before + 2)
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.communicate(timeout=PATIENCE_S)


def pausing_a_host_stops_its_requests_until_it_is_resumed():
    with _large() as nginx, Folder() as folder, Running(folder, nginx, '--pace', 'unlimited', '--interval', '20ms'):
        _weir(folder, 'hosts', 'pause', _key(nginx))
        folder.await_quiet(nginx)
        before = len(nginx.log())
        time.sleep(1)
        assert len(_log(nginx)) == before, _arrivals(nginx)
        host = _told(folder, 'hosts', 'show', _key(nginx))['host']
        assert host['paused'] and host['state'] == 'paused' and host['reason'] == 'paused', host
        assert host['requests'] == len(_log(nginx)), (host, len(_log(nginx)))
        job, pages = _told(folder, 'jobs', 'show', '1')['jobs'][0], [path for _, path in _log(nginx) if path != '/robots.txt']
        assert job['done'] == len(pages) and job['queued'] == MANY + 1 - len(pages), (job, len(pages))
        _weir(folder, 'hosts', 'resume', _key(nginx))
        _until(lambda: len(_log(nginx)) > before + 5)


def host_pace_set_during_a_crawl_applies_to_the_next_request():
    with _large() as nginx, Door(nginx) as door, Folder() as folder, \
            Running(folder, nginx, '--pace', 'unlimited', '--interval', '50ms', url=door.url):
        _weir(folder, 'hosts', 'set', _key(door), '--max-rate', '2', '--interval', '400ms')
        before = len(door.gaps())
        _until(lambda: len(door.gaps()) >= before + 4)
        assert min(door.gaps()[before + 1:]) >= 0.5 - SLACK_S, door.gaps()
        _weir(folder, 'hosts', 'set', _key(door), '--default')
        before = len(door.gaps())
        _until(lambda: len(door.gaps()) >= before + 9)
        assert min(door.gaps()[before:]) < 0.4, door.gaps()


def predictions_of_why_and_hosts_agree_with_the_log():
    with site(**{'robots.txt': DELAY}) as nginx, Folder() as folder, Running(folder, nginx, '--pace', 'unlimited') as crawl:
        _until(lambda: _told(folder, 'why', f'{nginx.url}/p3.html')['state'] == 'queued')
        before = len(_log(nginx))
        why = _told(folder, 'why', f'{nginx.url}/p3.html')
        bounds = {bound['source'] + ' ' + bound['reason']: bound for bound in why['bounds']}
        delay = bounds['robots robots_delay']
        assert delay['value_ms'] == 300 and delay['line'] == 3, delay
        assert why['in_scope'] and why['robots']['verdict'] == 'allow' and why['live'], why
        expected, asked = why['expected_ms'] / 1000, time.time()
        assert why['position'] * 0.3 - 0.01 <= expected, why
        _until(lambda: any(path == '/p3.html' for _, path in _log(nginx)))
        came, place = next((at, place) for place, (at, path) in enumerate(_log(nginx)) if path == '/p3.html')
        assert expected - SLACK < came - asked, (came - asked, expected)
        assert place - before <= why['position'] + 1, (place, before, why)  # it was next, or one request was in flight
        denied = _told(folder, 'why', f'{nginx.url}/p7.html')
        assert denied['robots'] == {'verdict': 'deny', 'line': 2, 'rule': '/p7.html'}, denied
        ended = _told(folder, 'why', f'{nginx.url}/')
        assert ended['state'] == 'done' and ended['task']['status'] == 200 and ended['task']['ended_at_ms'], ended
        text = _weir(folder, 'why', f'{nginx.url}/p7.html').stdout
        assert 'forbids it, by line 2: /p7.html' in text and 'robots.txt, line 3' in text, text
        jobs = _told(folder, 'jobs', 'list')
        assert jobs['live'] and jobs['jobs'][0]['running'] and jobs['jobs'][0]['queued'] > 0, jobs
        code, _, _ = interrupt(crawl.process)
        assert code == 3, code


def why_accepts_a_host_name_for_its_first_page():
    """Asked during a crawl and from the state file: by host name, host:port or URL without scheme."""
    with site() as nginx, Folder() as folder:
        with Running(folder, nginx, '--interval', '500ms'):
            _until(lambda: _told(folder, 'why', f'{nginx.url}/')['state'] == 'done')
            live = _told(folder, 'why', _key(nginx))
            assert live['live'] and live['url'] == f'{nginx.url}/' and live['state'] == 'done' and live['bounds'], live
            assert live['at_host']['limit'] == 'none' and live['at_host']['limit_why'].startswith('nothing is refused at '), live
            text = _weir(folder, 'why', _key(nginx)).stdout
            assert 'limit of the host (none): nothing is refused at ' in text, text
        stored = _told(folder, 'why', _key(nginx))
        assert not stored['live'] and stored['url'] == f'{nginx.url}/' and stored['state'] == 'done', stored
        page = _told(folder, 'why', f'{_key(nginx)}/p0.html')
        assert page['url'] == f'{nginx.url}/p0.html' and page['state'] != 'unknown', page
        other = _told(folder, 'why', 'EXAMPLE.org')
        assert other['url'] == 'https://example.org/' and other['state'] == 'unknown', other


def many_clients_of_a_busy_crawl_are_all_answered():
    with _large() as nginx, _large() as other, Folder() as folder:
        process = folder.begin('--quiet', '--pace', 'unlimited', '--interval', '10ms', nginx.url, other.url)
        _until(lambda: os.path.exists(folder.path('weir.db.sock')) and len(_log(nginx)) > 3 and len(_log(other)) > 3)
        command = [os.path.abspath(sys.argv[1]), 'hosts', 'list', '--json', '--sort', 'queue']
        asking = [subprocess.Popen(command, cwd=folder.name, stdout=subprocess.PIPE, text=True) for _ in range(12)]
        answers = [json.loads(one.communicate(timeout=PATIENCE_S)[0]) for one in asking]
        assert all(answer['ok'] and answer['live'] and answer['matched'] == 2 for answer in answers), answers
        for host in answers[0]['hosts']:
            before, after = host['requests'], len(_log(nginx if host['host'] == _key(nginx) else other))
            assert 0 < before <= after and host['queued'] + host['requests'] >= MANY // 2, (host, after)
        interrupt(process)
        seen = _told(folder, 'hosts', 'list')
        assert not seen['live'] and seen['matched'] == 2, seen


def second_crawl_on_a_state_file_is_refused_with_the_process_id():
    with _large() as nginx, Folder() as folder, Running(folder, nginx, '--interval', '200ms') as crawl:
        run = folder.crawl('--out', 'second.jsonl', nginx.url)
        assert run.returncode == 1 and f'in use by process {crawl.process.pid};' in run.stderr, run
        run = folder.crawl('--resume')
        assert run.returncode == 1 and f'in use by process {crawl.process.pid};' in run.stderr, run
        assert crawl.process.poll() is None and _told(folder, 'jobs', 'list')['live']


def control_socket_is_private_removed_and_replaced_when_stale():
    with site() as nginx, Folder() as folder:
        with Running(folder, nginx, '--interval', '500ms'):
            mode = os.lstat(folder.path('weir.db.sock')).st_mode
            assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600, oct(mode)
            assert stat.S_IMODE(os.stat(folder.path('weir.db')).st_mode) == 0o600
        assert os.path.exists(folder.path('weir.db.sock'))  # the killed crawl could not remove its socket
        assert _told(folder, 'jobs', 'list')['live'] is False
        with Running(folder, nginx, '--resume') as crawl:
            assert _told(folder, 'jobs', 'list')['live'] is True
            interrupt(crawl.process)
        assert not os.path.exists(folder.path('weir.db.sock'))
        folder.write('weir.db.sock', 'mine')
        run = folder.crawl('--resume', '--pace', 'unlimited')
        assert run.returncode == 0 and 'cannot be inspected' in run.stderr and folder.read('weir.db.sock') == 'mine', run


def state_file_with_a_long_path_has_a_control_socket():
    with _large() as nginx, Folder() as folder:
        deep = os.path.join(*['a-folder-with-a-rather-long-name'] * 6)
        os.makedirs(folder.path(deep))
        state = os.path.join(folder.path(deep), 'weir.db')
        process = folder.begin('--quiet', '--interval', '200ms', '--state', state, nginx.url)
        _until(lambda: os.path.exists(state + '.sock') and len(_log(nginx)) > 2)
        assert _told(folder, 'jobs', 'list', '--state', state)['live']
        interrupt(process)


def invalid_control_requests_do_not_disturb_the_crawl():
    with _large() as nginx, Folder() as folder, Running(folder, nginx, '--interval', '50ms') as crawl:
        def say(data):
            with socket.socket(socket.AF_UNIX) as line:
                line.settimeout(PATIENCE_S)
                line.connect(os.path.relpath(folder.path('weir.db.sock')))
                try:
                    line.sendall(data)
                except (BrokenPipeError, ConnectionResetError):
                    return b''
                try:
                    return line.recv(65536)
                except ConnectionResetError:
                    return b''
        for data in (b'\n', b'[]\n', b'{"ask":"nothing"}\n', b'\xff\xfe\n', b'{"ask":"hosts","sort":7,"most":-5}\n',
                     b'{"ask":"why","url":"ftp://x"}\n', b'{"ask":"pause"}\n', b'{"ask":"set","host":"x"}\n',
                     b'{"ask":"why","url":"' + b'h' * 60000 + b'"}\n', b'[' * 60000 + b'\n'):
            answer = json.loads(say(data))
            assert answer['ok'] is (b'"hosts"' in data), (data[:50], answer)
        assert say(b'x' * 200000) == b''
        idle = [socket.socket(socket.AF_UNIX) for _ in range(40)]
        for line in idle:
            line.connect(os.path.relpath(folder.path('weir.db.sock')))
        for line in idle:
            line.close()
        _until(lambda: subprocess.run([os.path.abspath(sys.argv[1]), 'hosts', 'list'], cwd=folder.name,
                                     capture_output=True).returncode == 0)
        assert crawl.process.poll() is None


def host_settings_made_without_a_crawl_apply_to_the_next_one():
    with _large() as nginx, Door(nginx) as door, Folder() as folder:
        with Running(folder, nginx, '--interval', '100ms', url=door.url) as crawl:
            interrupt(crawl.process)
        assert 'for the next crawl' in _weir(folder, 'hosts', 'set', _key(door), '--interval', '500ms').stdout
        begun = len(door.gaps())
        with Running(folder, nginx, '--resume', url=door.url):
            _until(lambda: len(door.gaps()) >= begun + 3)
            assert min(door.gaps()[begun + 1:]) >= 0.5 - SLACK_S, door.gaps()
            assert _told(folder, 'hosts', 'show', _key(door))['host']['set_interval_ms'] == 500


def one_control_connection_carries_many_requests():
    with _large() as nginx, Folder() as folder, Running(folder, nginx, '--interval', '300ms') as crawl:
        with socket.socket(socket.AF_UNIX) as line, line.makefile('rb') as answers:
            line.connect(os.path.relpath(folder.path('weir.db.sock')))
            for _ in range(3):
                for ask in ('hosts', 'jobs'):
                    line.sendall(json.dumps({'ask': ask}).encode() + b'\n')
                    assert json.loads(answers.readline())['ok'] is True
        assert _weir(folder, 'jobs', 'export', '--states', '1').stdout.count('\n') > MANY  # read in many requests
        assert crawl.process.poll() is None


def steering_an_unknown_host_is_reported():
    with _large() as nginx, Folder() as folder:
        name, key = _key(nginx).partition(':')[0], _key(nginx)
        with Running(folder, nginx, '--interval', '300ms') as crawl:
            run = _weir(folder, 'hosts', 'pause', name)
            assert run.stdout == f'{name}: paused, if it is found\n', run
            assert run.stderr == f'weir hosts pause: {name} is not known so far; did you mean {key}?\n', run
            assert _told(folder, 'hosts', 'pause', 'other.example')['known'] is False
            assert '"weir hosts list" shows those that are' in _weir(folder, 'hosts', 'pause', 'other.example').stderr
            run = _weir(folder, 'hosts', 'set', key, '--interval', '2')
            assert (run.stdout, run.stderr) == (f'{key}: at least 2.0 s between two starts\n', ''), run
            assert _weir(folder, 'hosts', 'set', key, '--default').stdout == f'{key}: paced like all hosts\n'
            assert _weir(folder, 'hosts', 'pause', key).stdout == f'{key}: paused\n'
            assert _weir(folder, 'hosts', 'resume', key).stdout == f'{key}: not paused\n'
            interrupt(crawl.process)
        run = _weir(folder, 'hosts', 'resume', name)
        assert run.stdout == f'{name}: not paused, if it is found\n', run
        assert f'did you mean {key}?' in run.stderr, run
        assert _weir(folder, 'hosts', 'forget', key).stdout == f'{key}: forgotten\n'


def stored_limit_respects_crawl_delay_and_set_interval():
    with _large(**{'robots.txt': 'User-agent: *\nCrawl-delay: 0.5\n'}) as nginx, Folder() as folder:
        with Running(folder, nginx) as crawl:
            _until(lambda: len(_arrivals(nginx)) >= 3)
            interrupt(crawl.process)
        host, = _told(folder, 'hosts', 'list')['hosts']
        assert host['allowed_rate'] <= 2, host
        _weir(folder, 'hosts', 'set', _key(nginx), '--interval', '4s')
        assert _told(folder, 'hosts', 'show', _key(nginx))['host']['allowed_rate'] == 0.25


def jobs_are_shown_exported_cancelled_and_resumed():
    with site() as nginx, Folder() as folder:
        with Running(folder, nginx, '--interval', '500ms') as crawl:
            _weir(folder, 'jobs', 'show', '7', status=1)
            interrupt(crawl.process)
        shown = _weir(folder, 'jobs', 'show', '1').stdout
        assert 'unfinished' in shown and nginx.url in shown, shown
        tasks = [json.loads(line) for line in _weir(folder, 'jobs', 'export', '--states', '1').stdout.splitlines()]
        assert {task['state'] for task in tasks} == {'queued', 'done'}, tasks
        assert len({task['url'] for task in tasks}) == len(tasks) > 3
        run = _weir(folder, 'jobs', 'resume', '1', '--pace', 'unlimited', '--interval', '0', '--allow-private')
        assert run.returncode == 0, run
        tasks = [json.loads(line) for line in _weir(folder, 'jobs', 'export', '--states', '1').stdout.splitlines()]
        assert len(tasks) == 41 and all(task['state'] == 'done' and task['status'] == 200 for task in tasks), tasks
        assert 'over already' in _weir(folder, 'jobs', 'cancel', '1', status=1).stderr
        with Running(folder, nginx, '--interval', '500ms', '--out', 'two.jsonl') as crawl:
            _weir(folder, 'jobs', 'cancel', '2')
            crawl.process.communicate(timeout=PATIENCE_S)
            assert crawl.process.returncode == 1
        assert _told(folder, 'jobs', 'show', '2')['jobs'][0]['status'] == 'cancelled'
        assert folder.crawl('--resume').returncode == 2


def exported_line_agrees_with_the_state_file():
    with site(**{'robots.txt': 'User-agent: *\nDisallow: /p7.html\n'}) as nginx, Folder() as folder:
        assert folder.crawl('--pace', 'unlimited', '--interval', '0', nginx.url).returncode == 0
        told = folder.by_url()
        _weir(folder, 'jobs', 'export', '1', '--out', 'lines.jsonl')
        lines = folder.by_url('lines.jsonl')
        assert lines.keys() == told.keys()
        for url, line in lines.items():
            assert list(line) == list(told[url])  # the same members, in this order
            for name in ('status', 'bytes', 'digest', 'depth', 'referrer', 'attempts', 'verdict', 'error', 'error_text'):
                assert line[name] == told[url][name], (name, line, told[url])
            assert line['title'] is line['links'] is line['total_ms'] is None and line['wait_ms'] == {}
        assert 'File exists' in _weir(folder, 'jobs', 'export', '1', '--out', 'lines.jsonl', status=1).stderr
        assert _weir(folder, 'jobs', 'export', '1').stdout == folder.read('lines.jsonl')


def untrusted_names_are_escaped_in_output():
    with site() as nginx, Folder() as folder:
        assert folder.crawl('--pace', 'unlimited', nginx.url).returncode == 0
        db = sqlite3.connect(folder.path('weir.db'))
        db.execute("UPDATE tasks SET verdict = 'x', why = '<img src=x onerror=alert(1)>\u202e' WHERE id = 2")
        db.execute("INSERT INTO hosts (host) VALUES ('\"><img src=x>\u202egro.example')")
        db.commit()
        db.close()
        for words in (('hosts', 'list'), ('hosts', 'list', '--json'), ('jobs', 'export', '1'), ('jobs', 'export', '--states', '1'),
                      ('why', f'{nginx.url}/p0.html')):
            out = _weir(folder, *words).stdout
            assert out.isascii() and all(c >= ' ' or c == '\n' for c in out), (words, out)
        assert '<img' not in _weir(folder, 'hosts', 'list', '--json').stdout


if __name__ == '__main__':
    cases.main()
