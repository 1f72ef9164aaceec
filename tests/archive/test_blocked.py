#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir crawl against a firewall, as users see it. The first argument is the program."""
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'cli')]

import cases  # noqa: E402
from program import weir  # noqa: E402
from small_site import Site  # noqa: E402

WALL = (403, {'Server': 'cloudflare', 'Content-Type': 'text/html'}, b'<div id="cf-error-details">Sorry</div>')


def _answer(path, _fields):
    if path == '/robots.txt':
        return None
    if path == '/':
        return 200, {'Content-Type': 'text/html'}, b''.join(b'<a href="/%d">x</a>' % n for n in range(30))
    return WALL


def _crawl(site, folder, out, *words):
    run = weir('crawl', '--allow-private', '--interval', '50ms', '--out', out, *words, site.url('/'), cwd=folder)
    with open(f'{folder}/{out}', encoding='utf-8') as file:
        return run, [json.loads(line) for line in file]


def blocked_crawl_reports_it_in_progress_report_and_lines():
    """U10"""
    with Site(_answer) as site, tempfile.TemporaryDirectory() as folder:
        run, lines = _crawl(site, folder, 'a', '--report', 'report')
        name = f'127.0.0.1:{site.port}: its firewall (Cloudflare) '
        assert run.returncode == 1 and len(site.asked) <= 5, (run, site.asked)
        assert f'{name}blocks the crawler; weir sends it no requests for 24 hours' in run.stderr, run.stderr
        assert run.stdout.startswith('blocked after ') and 'blocked: 30 of these pages, by firewalls of 1 host\n' in run.stdout
        blocked = [line for line in lines if line['verdict'] == 'blocked']
        assert len(blocked) == 30 and all('Cloudflare' in line['error_text'] for line in blocked), lines
        assert {line['error'] for line in blocked} == {'firewall'}
        with open(f'{folder}/report', encoding='utf-8') as file:
            report = json.load(file)
        assert (report['end'], report['blocked'], report['blocked_hosts']) == ('blocked', 30, 1), report
        asked = len(site.asked)

        run, lines = _crawl(site, folder, 'b')
        assert run.returncode == 1 and len(site.asked) == asked, run
        assert f'{name}blocked the crawler in the last 24 hours' in run.stderr and '--ask-blocked' in run.stderr
        assert 'online' not in run.stderr and [line['verdict'] for line in lines] == ['blocked'], run

        run, lines = _crawl(site, folder, 'c', '--ask-blocked')
        assert asked < len(site.asked) <= asked + 4 and len(lines) == 31, run

        run = weir('crawl', '--resume', cwd=folder)
        assert run.returncode != 0 and 'nothing to resume' in run.stderr, run


if __name__ == '__main__':
    cases.main()
