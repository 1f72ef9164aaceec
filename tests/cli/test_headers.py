#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir headers: reads header lines and prints numbers."""
import json
import subprocess
import sys

import cases
from program import refusal, weir

NOW = 1700000000


def _run(text, *words):
    return subprocess.run([sys.argv[1], 'headers', '--now', str(NOW), *words], input=text.encode('latin-1'),
                          capture_output=True, timeout=20)


def _said(text):
    run = _run(text, '--json')
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert list(result) == ['retry_after_s', 'limit', 'remaining', 'reset_s']
    return tuple(result.values())


def headers_command_parses_rate_limit_fields():
    assert _said('Retry-After: 120\r\n') == (120, None, None, None)
    assert _said('X-RateLimit-Limit: 60\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1700000030\n') == (None, 60, 0, 30)
    assert _said('RateLimit: "a";r=5;t=7\nRateLimit-Policy: "a";q=9;w=60\n') == (None, 9, 5, 7)
    assert _said('Retry-After: Tue, 14 Nov 2023 22:14:20 GMT') == (60, None, None, None)
    assert _said('X-RateLimit-Reset-After: 1.250\nX-RateLimit-Remaining: 1') == (None, None, 1, 1.25)
    assert _said('') == (None, None, None, None)


def headers_command_joins_folded_lines():
    # the line break becomes a blank before ';'
    assert _said('RateLimit: "a";r=0\r\n\t;t=7\r\nRetry-After:\n 5\n') == (5, None, None, None)
    assert _said('RateLimit: "a";r=0,\r\n "b";r=1;t=7\r\nRetry-After:\n 5\n') == (5, None, 0, None)
    assert _said('X: y\n Retry-After: 5\n') == (None, None, None, None)
    assert _said(' Retry-After: 5\n') == (None, None, None, None)


def headers_command_reads_the_last_head_and_no_body():
    assert _said('HTTP/1.1 301 Moved\r\nRetry-After: 9\r\n\r\nHTTP/1.1 200 OK\r\nX: y\r\n\r\n') == (None,) * 4
    assert _said('HTTP/1.1 429 No\r\nRetry-After: 9\r\n\r\nRetry-After: 99\r\n') == (9, None, None, None)


def headers_command_prints_text_without_json():
    run = _run('Retry-After: 1.5\nX-RateLimit-Limit: 10\n')
    assert run.returncode == 0
    assert run.stdout.decode() == 'retry_after_s  1.5\nlimit          10\nremaining      -\nreset_s        -\n'


def headers_command_uses_the_clock_without_option_now():
    run = weir('headers', '--json')
    assert run.returncode == 0 and json.loads(run.stdout)['limit'] is None
    for bad in ('x', '-1', '1e9', '9000000001', ''):
        assert 'use 0 ... 9000000000' in refusal('headers', '--now', bad), bad
    assert weir('headers', '--now', '0').returncode == 0


def headers_command_survives_hostile_bytes_and_endless_input():
    assert _said('Retry-After: 5\x00\nRetry-After: \xff\n\x00\x00:\n') == (None,) * 4
    assert _said('Retry-After: ' + '9' * 20000) == (31 * 86400, None, None, None)
    run = _run('A: b\n' * 60000)
    assert run.returncode == 1 and b'bytes on standard input' in run.stderr and run.stdout == b''
    assert _said('\n' * 1000 + 'Retry-After: 5\n') == (None,) * 4
    assert _run(('A: b\n' * 60000)[:256 * 1024]).returncode == 0


if __name__ == '__main__':
    cases.main()
