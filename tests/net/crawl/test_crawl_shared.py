#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir jobs, hosts, why, report and the output of crawls that several processes share on a real
PostgreSQL. The first argument is the program."""
import collections
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

from site_rig import Folder, Nginx, cases, site

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'store'))
from postgres import Postgres  # noqa: E402

MANY = 3000  # pages of a host, too many for the time of a test
HOSTS = 3
PATIENCE = 60
SERVER = Postgres()
KEYS = ('url final_url status bytes digest body content_type title depth referrer attempts links verdict error error_text wait_ms '
        'dns_ms connect_ms first_byte_ms total_ms').split()


def _until(true, what):
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, f'not reached: {what}'
        time.sleep(0.1)


class Shared(Folder):
    """A folder, its own database, and processes that crawl."""

    def __enter__(self):
        super().__enter__()
        SERVER.use_another()
        self.url, self.ask = SERVER.url, SERVER.ask
        self.crawls = []
        return self

    def __exit__(self, *why):
        for crawl in self.crawls:
            if crawl.poll() is None:
                crawl.kill()
            crawl.communicate()
        super().__exit__(*why)

    def join(self, *words):
        """Starts one more process."""
        crawl = self.begin('--state', self.url, '--lease', '6s', '--quiet', *words)
        self.crawls.append(crawl)
        return crawl

    def weir(self, *words, status=0):
        run = subprocess.run([os.path.abspath(sys.argv[1]), *words, '--state', self.url], cwd=self.name,
                             capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, check=False)
        assert status is None or run.returncode == status, run
        return run

    def says(self, text, *words):
        """Returns true if the output has the text, whatever the status: a host may be between two
        processes."""
        run = self.weir(*words, status=None)
        return text in run.stdout + run.stderr

    def told(self, *words):
        return json.loads(self.weir(*words, '--json').stdout)

    def job(self):
        return self.told('jobs', 'show', '1')['jobs'][0]

    def ended(self):
        """Returns the exit statuses of all processes."""
        return [crawl.wait(timeout=PATIENCE) for crawl in self.crawls]


def _large():
    """Returns a site of several hosts, none of which can be done within a test."""
    links = ''.join(f'<a href="/many/{number}">x</a>' for number in range(MANY))
    return Nginx('location /many { default_type text/html; return 200 "<title>many</title>"; }', files={'index.html': links},
                 everywhere=True)


def _seeds(nginx):
    """Returns a URL for each host: the same site at several addresses."""
    port = nginx.url.rpartition(':')[2]
    return [f'http://127.0.0.{number + 1}:{port}/' for number in range(HOSTS)]


def _key(seed):
    return seed.removeprefix('http://').strip('/')


def _done(shared, key):
    """Returns the number of finished pages of a host."""
    rows = shared.ask(f"SELECT count(*) FROM tasks WHERE state != 0 AND host = (SELECT id FROM hosts WHERE host = '{key}')")
    return int(rows[0][0])


def _is_quiet(shared, key, other):
    """Returns true if no page of a host ends while four pages of the other do."""
    before, others = _done(shared, key), _done(shared, other)
    _until(lambda: _done(shared, other) >= others + 4, f'pages of {other}')
    return _done(shared, key) == before


def _token(shared, key):
    """Returns the lease token of a host."""
    return int(shared.ask(f"SELECT lease_token FROM hosts WHERE host = '{key}'")[0][0])


def every_command_sees_and_steers_all_processes():
    with _large() as nginx, Shared() as shared:
        seeds = _seeds(nginx)
        keys = [_key(seed) for seed in seeds]
        for _ in range(2):
            shared.join('--pace', 'strict', '--interval', '200ms', '--out', 'state', *seeds)
        _until(lambda: shared.ask("SELECT to_regclass('jobs') IS NOT NULL AND to_regclass('nodes') IS NOT NULL") == [['t']],
               'tables')
        _until(lambda: len(shared.told('jobs', 'list')['jobs']) == 1 and shared.job()['processes'] == 2, 'processes')
        _until(lambda: sum(host['leased_by'] is not None for host in shared.told('hosts', 'list')['hosts']) == HOSTS, 'leases')
        _until(lambda: len(shared.told('hosts', 'list')['processes']) == 2, 'two processes')
        names = {process['name'] for process in shared.told('jobs', 'show', '1')['processes']}
        assert {host['leased_by'] for host in shared.told('hosts', 'list')['hosts']} - {None} <= names
        assert shared.job()['running'] is True and 'crawling' in shared.weir('jobs', 'list').stdout
        _until(lambda: shared.says(f'{max(names)}, job 1', 'jobs', 'show', '1'), 'its name')
        _until(lambda: shared.told('hosts', 'show', keys[0])['host']['queued'] > 10, 'a queue')
        last = f'{seeds[0]}many/{MANY - 1}'
        _until(lambda: shared.says(' holds its host\nit is queued, with ', 'why', last), 'who has it')
        _until(lambda: shared.says('its turn is expected in', 'why', last), 'when')
        _until(lambda: shared.says('would store', 'hosts', 'forget', keys[0]), 'a refusal')
        _until(lambda: shared.says('within a sixth of --lease', 'hosts', 'pause', keys[0]), 'an order')
        unknown = shared.weir('hosts', 'pause', 'unknown.example')
        assert unknown.stdout == 'unknown.example: paused, if it is found\n' and 'not known so far' in unknown.stderr, unknown
        _until(lambda: _is_quiet(shared, keys[0], keys[1]), 'a pause')
        _until(lambda: shared.says('the time of its turn', 'why', last), 'an endless wait')
        _until(lambda: shared.says('no process holds its host, which has to wait', 'why', last), 'a rest')
        before = _done(shared, keys[0])
        shared.weir('hosts', 'resume', keys[0])
        _until(lambda: _done(shared, keys[0]) > before, 'an end of the pause')
        shared.weir('hosts', 'set', keys[0], '--interval', '1h')
        _until(lambda: _is_quiet(shared, keys[0], keys[1]), 'a pace')
        shared.weir('jobs', 'pause', '1')
        assert shared.ended() == [3, 3]
        assert 'unfinished' in shared.weir('jobs', 'list').stdout
        assert 'no process works on this job' in shared.weir('why', last).stdout
        assert 'no process crawls' in shared.weir('jobs', 'pause', '1', status=1).stderr
        assert 'there is no such job' in shared.weir('jobs', 'pause', '7', status=1).stderr
        assert not any(host['leased_by'] for host in shared.told('hosts', 'list')['hosts'])


def cancelled_shared_job_ends_everywhere_and_keeps_its_lines():
    with _large() as nginx, Shared() as shared:
        seeds = _seeds(nginx)
        for _ in range(2):
            shared.join('--pace', 'strict', '--interval', '100ms', '--out', 'state', *seeds)
        _until(lambda: shared.ask("SELECT to_regclass('nodes') IS NOT NULL") == [['t']] and
               shared.weir('jobs', 'list').stdout.count('\n') == 2 and shared.job()['processes'] == 2 and
               shared.job()['done'] > 20, 'pages')
        shared.weir('jobs', 'cancel', '1')
        assert shared.ended() == [1, 1]
        job = shared.job()
        assert (job['status'], job['why'], job['processes']) == ('cancelled', 'by the user', 0), job
        shared.weir('jobs', 'export', '1', '--out', 'lines.jsonl')
        again = shared.weir('jobs', 'export', '1', '--out', 'lines.jsonl', status=1)
        assert again.stderr == 'weir jobs export: --out: cannot write lines.jsonl: File exists; name another file, or remove it\n', again
        lines = shared.by_url('lines.jsonl')
        assert len(lines) == job['done'] > 20
        for line in lines.values():
            assert list(line) == KEYS and line['status'] == 200 and line['total_ms'] > 0, line
        states = [json.loads(line) for line in shared.weir('jobs', 'export', '--states', '1').stdout.splitlines()]
        assert collections.Counter(task['state'] for task in states) == {'done': job['done'], 'queued': job['queued']}
        report = shared.told('report', '1')
        assert (report['end'], report['pages'], report['fetched']) == ('cancelled', job['done'], job['done']), report
        assert sum(host['ok'] for host in report['hosts']) == job['done'] and len(report['hosts']) == HOSTS
        runs = [shared.told('report', '--run', str(run), '1')['pages'] for run in (1, 2)]
        assert sum(runs) >= job['done'], runs  # the process that had the page counts a refused one
        text = shared.weir('report').stdout
        assert 'job 1, all processes' in text and '--run N' in text, text
        assert 'no such job' in shared.weir('report', '7', status=1).stderr


def each_process_has_its_own_output_file_and_resumes_it():
    with site() as nginx, Shared() as shared:
        words = ['--pace', 'strict', '--interval', '100ms', '--out', 'own.jsonl', nginx.url]
        first = shared.join(*words)
        shared.await_lines(5, 'own.jsonl')
        first.send_signal(signal.SIGSTOP)  # it keeps the file open
        second = shared.join(*words)
        assert second.wait(timeout=PATIENCE) == 1
        assert 'is being written to by another process; give each its own file' in second.stderr.read()
        first.send_signal(signal.SIGKILL)
        first.wait(timeout=PATIENCE)
        with open(shared.path('own.jsonl'), 'a', encoding='ascii') as file:
            file.write('{"url": "half a li')  # beyond the committed part
        again = shared.join(*words)
        assert again.wait(timeout=PATIENCE) == 0, again.stderr.read()
        assert len(shared.by_url('own.jsonl')) == 41
        other = shared.join(*words)  # the job is done: this is another job, and the file belongs to the old one
        assert other.wait(timeout=PATIENCE) == 2
        assert 'exists already' in other.stderr.read()


def host_whose_claim_reply_was_lost_is_claimed_again():
    with _large() as nginx, Shared() as shared:
        seeds = _seeds(nginx)
        key = _key(seeds[1])
        shared.join('--pace', 'strict', '--interval', '100ms', '--out', 'state', *seeds)
        _until(lambda: shared.ask("SELECT to_regclass('nodes') IS NOT NULL") == [['t']] and _done(shared, key) > 2, 'pages')
        answer = shared.ask(f"WITH claim AS (UPDATE hosts SET lease_token = nextval('tokens') WHERE host = '{key}'"
                            # a claim in the name of the process, which does not see the answer
                            " RETURNING lease_token) SELECT * FROM claim")
        lost = int(answer[0][0])
        _until(lambda: _token(shared, key) > lost, 'another claim')
        before = _done(shared, key)
        _until(lambda: _done(shared, key) > before, 'pages by it')


def joining_process_prints_its_job_and_how_to_resume_it():
    with _large() as nginx, Shared() as shared:
        seeds = _seeds(nginx)[:1]
        words = ['--state', shared.url, '--lease', '6s', '--pace', 'strict', '--interval', '100ms', '--out', 'state']
        with open(shared.path('said'), 'wb') as said:
            shared.crawls.append(subprocess.Popen(shared.command(*words, *seeds), cwd=shared.name, stdin=subprocess.DEVNULL,
                                                  stdout=subprocess.DEVNULL, stderr=said))
        _until(lambda: 'job 1, no other process' in shared.read('said'), 'its job')
        _until(lambda: shared.ask('SELECT count(*) FROM tasks WHERE state != 0') != [['0']], 'pages')
        mate = shared.crawl(*words, '--max-time', '6s', *seeds)
        assert mate.returncode == 3 and 'weir crawl: job 1, with 1 other process\n' in mate.stderr, mate
        assert 'waits: other processes hold all hosts that are not done' in mate.stderr, mate
        assert f'weir crawl --resume --state {shared.url.partition("?")[0]} --job 1 --out state\n' in mate.stderr, mate
        other = shared.crawl(*words, '--max-time', '1s', '--depth', '3', *seeds)
        assert 'job 2, no other process; job 1, started with other options, has 1: weir jobs show 1\n' in other.stderr, other


def _forward(source, target, old, new):
    while data := source.recv(65536):
        target.sendall(data.replace(old, new))
    target.shutdown(socket.SHUT_WR)


def _pretend(place, server, old, new):
    """Listens at the socket `place` and forwards to the server, with `old` replaced by `new` in its
    replies."""
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(place)
        door.listen()
        while True:
            client, back = door.accept()[0], socket.socket(socket.AF_UNIX)
            back.connect(server)
            threading.Thread(target=_forward, args=(client, back, b'', b''), daemon=True).start()
            threading.Thread(target=_forward, args=(back, client, old, new), daemon=True).start()


def _lock(shared):
    """Creates a role that needs its password."""
    shared.ask("CREATE ROLE locked LOGIN PASSWORD 'right'")
    with open(f'{SERVER.folder}/data/pg_hba.conf', 'r+', encoding='ascii') as file:
        rest = file.read()
        file.seek(0)
        file.write('local all locked scram-sha-256\n' + rest)
    shared.ask('SELECT pg_reload_conf()')
    _until(lambda: subprocess.run(['psql', '-w', shared.url.replace('user=weir', 'user=locked'), '-c', ''], capture_output=True,
                                  check=False).returncode != 0, 'a lock')


def read_only_role_gets_the_missing_rights_named():
    with site() as nginx, Shared() as shared:
        assert shared.join('--pace', 'unlimited', '--out', 'state', nginx.url).wait(timeout=PATIENCE) == 0
        shared.ask('CREATE ROLE looker LOGIN')
        shared.ask('GRANT SELECT ON ALL TABLES IN SCHEMA public TO looker')
        shared.url = shared.url.replace('user=weir', 'user=looker')
        for words in (('jobs', 'list'), ('hosts', 'list'), ('why', nginx.url), ('report',)):
            shared.weir(*words)
        cure = '; let the role own the database, or see "Rights" in weir-state(5)\n'
        steered = shared.weir('hosts', 'pause', _key(nginx.url), status=1).stderr
        crawled = shared.crawl('--out', 'state', '--state', shared.url, nginx.url).stderr
        assert steered.endswith('permission denied for table hosts' + cure), steered
        assert crawled.endswith('permission denied for table jobs' + cure) and crawled.count('\n') == 1, crawled


def unsuitable_databases_are_refused_with_advice():
    with Shared() as shared:
        version = shared.ask('SHOW server_version')[0][0].encode()
        old, new = b'server_version\0' + version, b'server_version\0' + b'9.6'.ljust(len(version))
        threading.Thread(target=_pretend, args=(shared.path('.s.PGSQL.5432'), f'{SERVER.folder}/.s.PGSQL.5432', old, new),
                         daemon=True).start()
        _until(lambda: os.path.exists(shared.path('.s.PGSQL.5432')), 'a socket')
        shared.ask('CREATE ROLE few LOGIN')
        _lock(shared)
        shared.ask('REVOKE CREATE ON SCHEMA public FROM PUBLIC')
        table = {shared.url.replace(SERVER.folder, shared.name): 'it is PostgreSQL 9; weir needs 13 or later',
                 shared.url.replace('user=weir', 'user=few'): 'permission denied for schema public; let the role own the database',
                 shared.url.replace('user=weir', 'user=none'): 'role "none" does not exist; createdb makes a database, createuser a',
                 shared.url.replace('/weir', '/none', 1): 'database "none',
                 shared.url.replace('user=weir', 'user=locked'): 'no password supplied; give it in the URL, as PGPASSWORD, or in',
                 shared.url.replace('user=weir', 'user=locked&password=s3cret'):
                     'authentication failed for user "locked"; give the right one',
                 shared.url + '&nosuch=s3cret': 'write @, / and % in a password as'}
        for url, expected in table.items():
            run = shared.crawl('--out', 'state', '--state', url, 'http://127.0.0.1:1/')
            assert run.returncode == 1 and expected in run.stderr, (url, run)
            assert run.stderr.count('\n') == 1 and 's3cret' not in run.stderr, run


def unavailable_database_is_reported_in_one_line():
    with Shared() as shared:
        for words in (('jobs', 'list'), ('hosts', 'list'), ('why', 'example.org'), ('report',), ('jobs', 'export', '1')):
            run = shared.weir(*words, status=1 if words == ('report',) else 2)
            assert run.stdout == '' and run.stderr.count('\n') == 1 and 'tables of weir' in run.stderr, run
        shared.url = 'postgres://me:secret@127.0.0.1:1/none'
        run = shared.weir('jobs', 'list', status=1)
        assert run.stderr.count('\n') == 1 and 'secret' not in run.stderr, run
        assert 'Connection refused; start PostgreSQL there, or name its port' in run.stderr, run
        run = shared.crawl('--out', 'state', '--state', 'weir.db', 'http://127.0.0.1:1/')
        assert run.returncode == 2 and '--out state keeps the lines in a database' in run.stderr, run
        assert not os.path.exists(shared.path('weir.db'))


if __name__ == '__main__':
    if '--list' in sys.argv:
        cases.main()
    with SERVER:
        cases.main()
