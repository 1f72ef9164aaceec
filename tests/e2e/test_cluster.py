#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Several processes that crawl together on PostgreSQL, while some are killed, stopped and started: judged by what the
hosts saw, and by comparison with a crawl by one process.

usage: test_cluster.py WEIR [HOSTS PAGES SECONDS]    longer, with something happening for so many seconds
"""
import asyncio
import collections
import glob
import json
import os
import pwd
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

INTERVAL_S = 1.5
CLOSEST_S = 0.75  # a request is noticed late by a busy machine, and the next one at once
LEASE = '3s'


class Web:
    """Hosts of so many pages, each on a port of its own; .seen has what they saw."""

    def __init__(self, hosts, pages):
        self.pages = pages
        self.seen = []
        self.ports = []
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        threading.Thread(target=self._run, args=(hosts, ready), daemon=True).start()
        ready.wait()

    def _run(self, hosts, ready):
        asyncio.set_event_loop(self._loop)
        for _ in range(hosts):
            server = self._loop.run_until_complete(asyncio.start_server(self._serve, '127.0.0.1', 0, backlog=512))
            self.ports.append(server.sockets[0].getsockname()[1])
        ready.set()
        self._loop.run_forever()

    def _body(self, port, path):
        number = int(path.strip('/') or 0)
        at = self.ports.index(port)
        beside = self.ports[(at + number + 1) % len(self.ports)]
        links = [f'/{n}' for n in (2 * number + 1, 2 * number + 2) if n < self.pages]
        links.append(f'http://127.0.0.1:{beside}/{number or ""}')  # other processes find it
        return ''.join(f'<a href="{link}">x</a>' for link in links).encode()

    async def _serve(self, reader, writer):
        port = writer.get_extra_info('sockname')[1]
        try:
            while True:
                head = await reader.readuntil(b'\r\n\r\n')
                path = head.split(b' ', 2)[1].decode()
                self.seen.append((time.monotonic(), port, path))
                is_page = path != '/robots.txt'
                body = self._body(port, path) if is_page else b''
                status = '200 OK' if is_page else '404 Not Found'
                writer.write(f'HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n'
                             .encode() + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


class Postgres:
    """A server on a socket in a folder of its own; it does not run as root."""

    def __init__(self, folder):
        programs = os.path.dirname((sorted(glob.glob('/usr/lib/postgresql/*/bin/postgres')) or
                                    [shutil.which('postgres')])[-1])
        self._who = {'user': 'postgres', 'group': 'postgres'} if os.geteuid() == 0 else {}
        self.folder = folder
        if self._who:
            os.chown(folder, pwd.getpwnam('postgres').pw_uid, -1)
        subprocess.run([f'{programs}/initdb', '-D', f'{folder}/data', '-U', 'weir', '-A', 'trust', '-E', 'UTF8', '-N',
                        '--no-locale'], check=True, stdout=subprocess.DEVNULL, cwd='/', **self._who)
        self.process = subprocess.Popen(
            [f'{programs}/postgres', '-D', f'{folder}/data', '-k', folder, '-c', 'listen_addresses=', '-c', 'fsync=off',
             '-c', 'max_connections=30'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd='/', **self._who)
        self.url = f'postgres:///postgres?host={folder}&user=weir'
        for _ in range(600):
            if subprocess.run(['psql', self.url, '-c', ''], capture_output=True).returncode == 0:
                return
            time.sleep(0.05)
        raise RuntimeError('PostgreSQL does not answer')

    def ask(self, sql):
        out = subprocess.run(['psql', self.url, '-AtF', '\t', '-c', sql], check=True, capture_output=True, text=True)
        return [line.split('\t') for line in out.stdout.splitlines()]

    def close(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()


class Crawl:
    """Processes that run the same command."""

    def __init__(self, weir, folder, url, web):
        self._weir, self._folder, self._url, self._web = weir, folder, url, web
        self.running = []
        self._count = 0

    def start(self):
        self._count += 1
        name = f'{self._folder}/out-{self._count}.jsonl'
        seeds = [f'http://127.0.0.1:{port}/' for port in self._web.ports]
        process = subprocess.Popen(
            [self._weir, 'crawl', '--state', self._url, '--out', name, '--lease', LEASE, '--allow-private', '--quiet',
             '--pace', 'strict', '--interval', f'{INTERVAL_S}s', '--failure-threshold', '0', *seeds],
            stdout=subprocess.DEVNULL, stderr=open(f'{name}.err', 'w'))
        self.running.append(process)
        return process

    def lines(self, lengths):
        """Of all processes: what counts of their files."""
        for name in sorted(glob.glob(f'{self._folder}/out-*.jsonl')):
            with open(name, 'rb') as file:
                text = file.read(lengths.get(os.path.realpath(name), 0))
            yield from (json.loads(line) for line in text.decode().splitlines() if line.strip())


def _disturb(crawl, seconds, chance):
    """Kills, stops beyond the lease, and starts processes; four at most."""
    until = time.monotonic() + seconds
    stopped = []
    while time.monotonic() < until and any(each.poll() is None for each in crawl.running):
        time.sleep(chance.uniform(1, 3))
        alive = [each for each in crawl.running if each.poll() is None and each not in [s[0] for s in stopped]]
        what = chance.choice(['kill', 'stop', 'start', 'end'])
        if what == 'start' and len(alive) < 4:
            crawl.start()
        elif len(alive) > 1 and what == 'kill':
            chance.choice(alive).kill()
        elif len(alive) > 1 and what == 'end':
            chance.choice(alive).terminate()
        elif len(alive) > 1 and what == 'stop':
            victim = chance.choice(alive)
            victim.send_signal(signal.SIGSTOP)
            stopped.append((victim, time.monotonic() + chance.uniform(4, 8)))
        for each in [s for s in stopped if time.monotonic() > s[1]]:
            each[0].send_signal(signal.SIGCONT)
            stopped.remove(each)
    for each in stopped:
        each[0].send_signal(signal.SIGCONT)


def _judge(web, lines, disturbed):
    wanted = {f'http://127.0.0.1:{port}/{number or ""}' for port in web.ports for number in range(web.pages)}
    told = collections.Counter(line['url'] for line in lines)
    assert set(told) == wanted, f'lost: {sorted(wanted - set(told))[:5]}, extra: {sorted(set(told) - wanted)[:5]}'
    assert max(told.values()) == 1, f'told twice: {told.most_common(3)}'
    assert all(line['status'] == 200 for line in lines), 'not all were fetched'
    by_port = collections.defaultdict(list)
    for at, port, path in web.seen:
        by_port[port].append((at, path))
    for port, seen in by_port.items():
        seen.sort()
        for (at, path), (later, other) in zip(seen, seen[1:]):
            assert later - at >= CLOSEST_S, f'{port}: {other} came {later - at:.3f} s after {path}'
    pages = collections.Counter((port, path) for _, port, path in web.seen if path != '/robots.txt')
    doubled = sum(count - 1 for count in pages.values())
    assert doubled <= disturbed * len(web.ports), f'{doubled} were fetched twice'


def main():
    weir = os.path.abspath(sys.argv[1])
    hosts, pages, seconds = (int(word) for word in sys.argv[2:5]) if len(sys.argv) > 2 else (9, 5, 10)
    seed = int(os.environ.get('WEIR_TEST_SEED', time.time()))
    print(f'seed {seed}')
    with tempfile.TemporaryDirectory(prefix='weir-cluster-') as folder:
        os.chmod(folder, 0o755)
        os.mkdir(f'{folder}/pg')
        postgres, web = Postgres(f'{folder}/pg'), Web(hosts, pages)
        crawl = Crawl(weir, folder, postgres.url, web)
        try:
            for _ in range(3):
                crawl.start()
            _disturb(crawl, seconds, random.Random(seed))
            if all(each.poll() is not None for each in crawl.running):
                crawl.start()
            for each in crawl.running:
                each.wait(timeout=60 + 4 * pages * INTERVAL_S)
            jobs = postgres.ask('SELECT status FROM jobs')
            assert jobs == [['completed']], f'jobs: {jobs}'
            lengths = {path: int(count) for path, count in postgres.ask('SELECT path, bytes FROM outputs')}
            _judge(web, list(crawl.lines(lengths)), len(crawl.running))
        except (AssertionError, subprocess.TimeoutExpired) as trouble:
            print(f'FAILED: {trouble}')
            for name in sorted(glob.glob(f'{folder}/*.err')):
                print(name, open(name).read()[-500:])
            print(postgres.ask('SELECT id, status FROM jobs'), postgres.ask('SELECT state, count(*) FROM tasks GROUP BY 1'),
                  postgres.ask('SELECT lease_owner, count(*) FROM hosts GROUP BY 1'), postgres.ask('SELECT * FROM nodes'))
            return 1
        finally:
            for each in crawl.running:
                if each.poll() is None:
                    each.kill()
                    each.wait()
            postgres.close()
    print(f'{len(crawl.running)} processes, {len(web.seen)} requests')
    return 0


if __name__ == '__main__':
    sys.exit(main())
