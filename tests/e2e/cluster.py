# SPDX-License-Identifier: MIT
"""Fixture for tests of several processes on one PostgreSQL: the database, hosts that record when
requests arrive, and the processes, which a test can kill, stop and start."""
import atexit
import collections
import ctypes
import functools
import glob
import json
import os
import pwd
import selectors
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import stamp  # noqa: E402

PATIENCE_S = 120
INTERVAL_S = 0.3
LEASE_S = 2
PACE = ['--lease', f'{LEASE_S}s', '--pace', 'strict', '--interval', f'{INTERVAL_S}s', '--failure-threshold', '0']


def weir():
    """Returns the path of the program, which is the test program's first argument."""
    return os.path.abspath(sys.argv[1])


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)  # shells let background processes ignore SIGQUIT


def wait_for(condition, what, seconds=PATIENCE_S):
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until, f'waited {seconds} s for {what}'
        time.sleep(0.02)
    return found


# ---- hosts ----

Seen = collections.namedtuple('Seen', 'at port path')


class Web:
    """A web of hosts, each on its own port. .seen lists the requests with the kernel's time stamps.
    `answer(port, path)` returns (status, header lines, body); while a connection does not accept
    all of it, all other connections wait."""

    def __init__(self, hosts, answer):
        self.answer = answer
        self.seen = []
        self._ahead_s = time.monotonic() - time.time()
        self._selector = selectors.DefaultSelector()
        listeners = [stamp.listen() for _ in range(hosts)]
        self.ports = [listener.getsockname()[1] for listener in listeners]
        for listener in listeners:
            self._selector.register(listener, selectors.EVENT_READ, self._accept)
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            for key, _ in self._selector.select():
                key.data(key.fileobj)

    def _accept(self, listener):
        connection = listener.accept()[0]
        self._selector.register(connection, selectors.EVENT_READ, functools.partial(self._serve, []))

    def _serve(self, pieces, connection):
        try:
            pieces.append(stamp.receive(connection))
            is_over = not pieces[-1][0]
            if pieces[-1][0].endswith(b'\r\n\r\n'):
                self._answer(connection, pieces[0][1], b''.join(data for data, _ in pieces))
                pieces.clear()
        except OSError:  # the client process was killed
            is_over = True
        if is_over:
            self._selector.unregister(connection)
            connection.close()

    def _answer(self, connection, came_at, head):
        port, path = connection.getsockname()[1], head.split(b' ', 2)[1].decode()
        self.seen.append(Seen(came_at + self._ahead_s, port, path))
        status, fields, body = self.answer(port, path)
        lines = [f'HTTP/1.1 {status} x', f'Content-Length: {len(body)}', *fields, '', '']
        connection.sendall('\r\n'.join(lines).encode('latin-1') + body)

    def paths(self, port):
        return [seen.path for seen in list(self.seen) if seen.port == port]

    def intervals(self, port=None):
        """Returns the seconds between consecutive requests to each host (or to the host on `port`).
        """
        by_port = collections.defaultdict(list)
        for seen in sorted(self.seen):
            by_port[seen.port].append(seen.at)
        return [later - sooner for each, times in by_port.items() if port in (None, each)
                for sooner, later in zip(times, times[1:])]

    def judge_intervals(self, interval_s):
        stamp.judge(self.intervals(), interval_s)


# ---- the database ----

class Postgres:
    """A PostgreSQL server on a Unix socket in its own folder, not run as root. With `primary` it is
    a replica of that server."""

    def __init__(self, primary=None):
        found = sorted(glob.glob('/usr/lib/postgresql/*/bin/postgres')) or [shutil.which('postgres')]
        self._programs = os.path.dirname(found[-1])
        self._who = {'user': 'postgres', 'group': 'postgres'} if os.geteuid() == 0 else {}
        self.folder = tempfile.mkdtemp(prefix='weir-pg-', dir='/dev/shm' if os.access('/dev/shm', os.W_OK) else None)
        if self._who:
            os.chown(self.folder, pwd.getpwnam('postgres').pw_uid, -1)
        make = ['initdb', '-A', 'trust', '-E', 'UTF8', '-N', '--no-locale'] if primary is None else [
            'pg_basebackup', '-h', primary.folder, '-R', '-c', 'fast', '-N']
        subprocess.run([f'{self._programs}/{make[0]}', '-D', f'{self.folder}/data', '-U', 'weir', *make[1:]], check=True,
                       stdout=subprocess.DEVNULL, cwd='/', **self._who)
        self.socket = f'{self.folder}/.s.PGSQL.5432'
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [f'{self._programs}/postgres', '-D', f'{self.folder}/data', '-k', self.folder, '-c', 'listen_addresses=',
             '-c', 'fsync=off', '-c', 'max_connections=60', '-c', 'shared_buffers=32MB'], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, cwd='/', preexec_fn=_die_with_parent, **self._who)
        wait_for(lambda: subprocess.run(['psql', self.url(), '-c', ''], capture_output=True).returncode == 0,
                 'PostgreSQL')

    def url(self, schema='public', user='weir'):
        return f'postgres:///postgres?host={self.folder}&user={user}&options=-csearch_path%3D{schema}'

    def url_by(self, schema, *roads, more=''):
        """Returns a URL that leads through these links (Road objects), to this server or to others.
        """
        hosts = ','.join(f'127.0.0.1:{road.port}' for road in roads)
        return f'postgres://weir@{hosts}/postgres?options=-csearch_path%3D{schema}{more}'

    def schema(self, name):
        self.ask(f'CREATE SCHEMA {name}')
        return self.url(name)

    def ask(self, sql, schema='public'):
        out = subprocess.run(['psql', self.url(schema), '-AtF', '\t', '-c', sql], check=True, capture_output=True,
                             text=True)
        return [line.split('\t') for line in out.stdout.splitlines()]

    def promote(self):
        self.ask('SELECT pg_promote()')

    def stop(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def close(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


@functools.lru_cache
def postgres():
    """Returns the server that all tests of a program share; the first caller starts it."""
    server = Postgres()
    atexit.register(server.close)
    return server


# ---- processes ----

class Clocks:
    """Sets a wrong wall clock, or a time that the machine has slept, for one process (see
    clocks.c)."""

    def __init__(self, library, path):
        self._path = path
        self.env = {'WEIR_TEST_CLOCKS': path, 'LD_PRELOAD': os.path.abspath(library)}
        self.set()

    def set(self, ahead_s=0, slept_s=0):
        with open(self._path, 'r+b' if os.path.exists(self._path) else 'wb') as file:
            file.write(struct.pack('qq', round(ahead_s * 1000), round(slept_s * 1000)))


class Crawl:
    """Processes that run the same crawl command in one temporary folder; each has its own output
    file."""

    def __init__(self, weir, url, words):
        self._weir, self._url, self._words = weir, url, words
        self.folder = tempfile.mkdtemp(prefix='weir-cluster-')
        self.running = []

    def start(self, *more, url=None, env=None):
        name = f'{self.folder}/out-{len(self.running)}.jsonl'
        with open(f'{name}.err', 'w', encoding='utf-8') as errors:
            process = subprocess.Popen(
                [self._weir, 'crawl', '--state', url or self._url, '--out', name, '--allow-private', '--quiet', *self._words,
                 *more], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, cwd=self.folder,
                env={**os.environ, **(env or {})}, preexec_fn=_die_with_parent)
        process.out = name
        self.running.append(process)
        return process

    def alive(self):
        return [each for each in self.running if each.poll() is None]

    def wait(self, seconds=PATIENCE_S):
        for each in self.running:
            try:
                each.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                raise AssertionError(f'a crawl did not end in {seconds} s: {self.errors()}') from None

    def end(self, *statuses):
        """Waits until all processes have ended and checks that each status is one of these."""
        self.wait()
        assert {each.returncode for each in self.running} <= set(statuses), self.errors()

    def errors(self):
        return [open(name, encoding='utf-8').read()[-300:] for name in sorted(glob.glob(f'{self.folder}/*.err'))]

    def lines(self, lengths):
        """Yields the output lines of all processes. Of each file only the first `lengths[path]`
        bytes count."""
        for process in self.running:
            if not os.path.exists(process.out) and os.path.realpath(process.out) not in lengths:
                continue  # the process was killed before it created its file
            with open(process.out, 'rb') as file:
                text = file.read(lengths.get(os.path.realpath(process.out), 0))
            yield from (json.loads(line) for line in text.decode().splitlines() if line.strip())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for each in self.alive():
            each.kill()
            each.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


# ---- test webs, and checks of a crawl of them ----

_VOLATILE = ('attempts', 'referrer', 'depth', 'wait_ms', 'dns_ms', 'connect_ms', 'first_byte_ms', 'total_ms')


def tree(hosts, pages):
    """Returns a web and its seeds. The pages of a host form a tree; each page also links to another
    host, so that processes find URLs of hosts that other processes hold."""
    def answer(port, path):
        if path == '/robots.txt':
            return 404, [], b''
        number = int(path.strip('/') or 0)
        beside = web.ports[(web.ports.index(port) + number + 1) % hosts]
        links = [f'/{n}' for n in (2 * number + 1, 2 * number + 2) if n < pages]
        links.append(f'http://127.0.0.1:{beside}/{number or ""}')
        body = ''.join(f'<a href="{link}">x</a>' for link in links)
        return 200, ['Content-Type: text/html'], f'<title>{number}</title>{body}'.encode()
    web = Web(hosts, answer)
    return web, [f'http://127.0.0.1:{port}/' for port in web.ports]


def star(pages):
    """Returns a web of one host whose first page links to all others: a process that has read it
    needs no database to continue."""
    links = ''.join(f'<a href="/{number}">x</a>' for number in range(pages - 1))

    def answer(_, path):
        if path == '/robots.txt':
            return 404, [], b''
        return 200, ['Content-Type: text/html'], (links if path == '/' else path).encode()
    web = Web(1, answer)
    return web, [f'http://127.0.0.1:{web.ports[0]}/']


def _stable(line):
    return json.dumps({name: value for name, value in line.items() if name not in _VOLATILE}, sort_keys=True)


def crawl_alone(weir, web, seeds):
    """Returns the sorted output lines of a crawl by one process with a state file and without
    pacing."""
    crawl = Crawl(weir, 'weir.db', ['--pace', 'unlimited', *seeds])
    try:
        process = crawl.start()
        crawl.wait()
        with open(process.out, encoding='utf-8') as file:
            return sorted(_stable(json.loads(line)) for line in file)
    finally:
        crawl.close()
        web.seen.clear()


_UNSTORED_S = 2  # for this long after its request a page may be in flight, or its result not be stored


def fetched_twice(web, disturbed):
    """Returns how many pages were fetched twice, and those among them that no disturbance explains.
    A page may be fetched twice if it was in flight or not yet stored when a process was killed
    or was stopped for longer than its lease. The requests show no process, only their time."""
    last, count, unexplained = {}, 0, []
    for seen in web.seen:
        before = last.get((seen.port, seen.path))
        last[seen.port, seen.path] = seen
        if before is None or seen.path == '/robots.txt':
            continue
        count += 1
        if not any(before.at <= at <= before.at + _UNSTORED_S for at in disturbed):
            unexplained.append((before, seen))
    return count, unexplained


def judge(web, crawl, alone, database, schema, interval_s, disturbed):
    """Checks that the lines equal those of a crawl by one process, that no host got requests too
    fast, and that few pages were fetched twice."""
    lengths = {path: int(count) for path, count in database.ask('SELECT path, bytes FROM outputs', schema)}
    lines = sorted(_stable(line) for line in crawl.lines(lengths))
    lost, extra = collections.Counter(alone) - collections.Counter(lines), collections.Counter(lines) - collections.Counter(alone)
    assert not lost and not extra, f'lost {len(lost)}: {list(lost)[:2]}, extra {len(extra)}: {list(extra)[:2]}'
    pages = collections.Counter((seen.port, seen.path) for seen in web.seen if seen.path != '/robots.txt')
    doubled = sum(count - 1 for count in pages.values())
    assert doubled <= len(web.ports) * (disturbed + 1), f'{doubled} were fetched twice'
    print(f'{len(crawl.running)} processes, {len(web.seen)} requests of {len(alone)} pages, {doubled} fetched twice')
    web.judge_intervals(interval_s)
