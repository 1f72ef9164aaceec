#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests weir crawl against real servers that limit requests, judged by their logs. The first argument is the program."""
import datetime
import email.utils
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'cli'), os.path.join(HERE, '..', 'net', 'client')]

import cases  # noqa: E402
from nginx import SLACK_S, Door, Nginx  # noqa: E402
from program import weir  # noqa: E402

HTTP = "log_format hosts '$msec $host $request_uri $status'; limit_req_zone $host zone=z:1m rate=%dr/s;"
SERVER = 'access_log hosts.log hosts; limit_req_status 429; limit_req zone=z%s;'


def _pages(count):
    """Returns the pages of a tree of links; the first is /0.html."""
    return {f'{n}.html': ''.join(f'<a href="/{m}.html">x</a>' for m in (2 * n + 1, 2 * n + 2) if m < count)
            for n in range(count)}


def _log(nginx):
    """Returns {host: [(seconds, path, status)]} of the log."""
    nginx.log()  # waits until the log is complete
    hosts = {}
    with open(f'{nginx.folder}/hosts.log', encoding='utf-8') as file:
        for line in file:
            at, host, path, status = line.split()
            hosts.setdefault(host, []).append((float(at), path, int(status)))
    return hosts


def _crawl(nginx, hosts, *words):
    with tempfile.TemporaryDirectory() as folder:
        run = weir('crawl', '--allow-private', '--quiet', '--state', f'{folder}/weir.db', '--out', '-', *words,
                   *[f'http://127.0.0.{n}:{nginx.port}/0.html' for n in range(1, hosts + 1)])
    return run, [json.loads(line) for line in run.stdout.splitlines()]


def limited_site_sends_no_429_at_an_interval_that_it_allows():
    """S1-25, V1: nginx refuses a request within 200 ms of another. At an interval of 400 ms none is refused."""
    with Nginx(SERVER % '', HTTP % 5, _pages(8)) as nginx, Door(nginx) as door:
        run, lines = _crawl(door, 3, '--pace', 'strict', '--interval', '400ms')
        log = _log(nginx)
        assert run.returncode == 0 and len(lines) == 24, run
        assert len(log) == 3, log
        for host, asked in log.items():
            assert not [status for _, _, status in asked if status == 429], asked
            assert len(asked) == 9 and asked[0][1] == '/robots.txt', asked
            assert len(door.gaps(host)) == 8 and min(door.gaps(host)) >= 0.4 - SLACK_S, door.gaps(host)


def unannounced_limit_of_a_real_server_is_found():
    """S0-94, S0-96: in the second half more than 90 % of the requests are answered."""
    with Nginx(SERVER % ' burst=3 nodelay', HTTP % 25, _pages(100), everywhere=True) as nginx:
        run, lines = _crawl(nginx, 1, '--max-rate', '500')
        asked = _log(nginx)['127.0.0.1']
        assert run.returncode == 0 and len(lines) == 100, run
        later = [status for _, _, status in asked[len(asked) // 2:]]
        assert later.count(429) < len(later) / 10, [status for _, _, status in asked]
        retries = [line['attempts'] - 1 for line in lines if line['attempts'] > 1]
        assert sum(retries) < 3 * max(len(retries), 1), retries


class _Later(http.server.BaseHTTPRequestHandler):
    """Returns 503 for the first request of a page, with a Retry-After date that is two to three seconds away."""
    asked = []

    def do_GET(self):
        is_page = self.path == '/page'
        if is_page:
            self.asked.append(time.time())
        is_early = is_page and len(self.asked) == 1
        self.send_response(503 if is_early else 200 if is_page else 404)
        if is_early:
            self.send_header('Retry-After', email.utils.formatdate(time.time() + 3, usegmt=True))
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, *_):
        pass


def time_zones_change_neither_waits_nor_reports():
    """H4: dates are read and written in UTC, whatever the time zone of the machine is."""
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), _Later) as server, tempfile.TemporaryDirectory() as folder:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for zone in ('XXX+12', 'XXX-14YYY'):
            _Later.asked.clear()
            run = weir('crawl', '--allow-private', '--quiet', '--state', f'{folder}/{zone}.db', '--out', '-', '--report',
                       f'{folder}/report', '--max-defer', '1h', f'http://127.0.0.1:{server.server_port}/page',
                       env={**os.environ, 'TZ': zone})
            assert run.returncode == 0 and len(_Later.asked) == 2, run
            assert 1.9 <= _Later.asked[1] - _Later.asked[0] < 3600, _Later.asked  # zones are hours apart
            with open(f'{folder}/report', encoding='utf-8') as file:
                ended = datetime.datetime.fromisoformat(json.load(file)['ended_at'].replace('Z', '+00:00'))
            os.unlink(f'{folder}/report')
            assert abs(ended.timestamp() - time.time()) < 3600, ended
        server.shutdown()


def ten_thousand_hosts_need_no_thread_each():
    """S4-4: each host has a robots.txt and a page, and gets one request for each."""
    hosts, most = 10000, 0
    with Nginx(SERVER % ' burst=9 nodelay', HTTP % 100, _pages(1), everywhere=True) as nginx, tempfile.TemporaryDirectory() as folder:
        with open(f'{folder}/seeds', 'w', encoding='utf-8') as file:
            file.writelines(f'http://127.{n // 62500}.{n // 250 % 250}.{n % 250 + 1}:{nginx.port}/0.html\n' for n in range(hosts))
        crawl = subprocess.Popen([os.path.abspath(sys.argv[1]), 'crawl', '--allow-private', '--quiet', '--seeds-file', 'seeds'],
                                 cwd=folder, stdin=subprocess.DEVNULL)
        while crawl.poll() is None:
            try:
                most = max(most, len(os.listdir(f'/proc/{crawl.pid}/task')))
            except FileNotFoundError:
                break
            time.sleep(0.02)
        log = _log(nginx)
        assert crawl.wait() == 0 and len(log) == hosts
        assert all([path for _, path, _ in asked] == ['/robots.txt', '/0.html'] for asked in log.values())
        assert 3 <= most <= 16 + os.cpu_count(), most


if __name__ == '__main__':
    cases.main()
