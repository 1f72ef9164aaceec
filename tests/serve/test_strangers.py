#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir serve with failing rules, hostile names and admin calls from outside. The first argument is
the program."""
import http.client
import json
import os
import re
import socket
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'cli')]

import cases  # noqa: E402
from daemon import TOKEN, Daemon  # noqa: E402

# More rules match /broken than one request can have: the decision fails without a fault of the
# caller.
FAILING = 'rules:\n' + ''.join(f'  - {{name: r{n}, key: ip, limit: 1000000/s}}\n' for n in range(8)) + '''
  - {name: r8, match: {path: /broken}, key: ip, limit: 1000000/s}
admission: {match: all, on_error: %s, trusted: [127.0.0.0/8]}
'''
HOSTILE = ['"><img src=x onerror=alert(1)>', '</script><script>alert(1)</script>', 'a"} 1\\nforged{x="', '\\', '"', "'; DROP TABLE hosts; --",
           '%0d%0aSet-Cookie: a=b', '{{7*7}}', '${jndi:ldap://x}', '../../etc/passwd']


def _verdicts(daemon):
    """Returns the number of requests by verdict, from /metrics."""
    text = daemon.ask('GET', '/metrics')[2]
    return {name: int(count) for name, count in re.findall(r'^weir_serve_requests_total\{verdict="(\w+)"\} (\d+)$', text, re.M)}


def _health(daemon):
    status, _, text = daemon.ask('GET', '/healthz')
    found = json.loads(text)
    assert (status == 503) == (found['status'] == 'unhealthy') and status in (200, 503), (status, text)
    return found


def _until(true, seconds=60):
    """Waits until the result is true, and returns it."""
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, 'timeout'
        time.sleep(0.02)
    return found


# ---- rules that fail ----

def failing_rule_admits_or_refuses_as_configured_and_is_counted():  # J9
    for on_error, statuses, allowed, verdict in (('open', (204, 204), True, 'failed_open'), ('closed', (403, 503), False, 'failed')):
        with Daemon(FAILING % on_error) as daemon:
            assert daemon.check(X_Original_URI='/')[0] == 204
            plain, fields, _ = daemon.check(X_Original_URI='/broken')
            told = daemon.check('/check?deny=429', X_Original_URI='/broken')[0]
            assert (plain, told) == statuses, on_error  # nginx gets no status that it would treat as its own error
            if not allowed:
                assert fields['x-weir-status'] == '503', fields
            status, answer = daemon.call('try', {'client': '192.0.2.1', 'target': '/broken'})
            assert status == 200 and (answer['allowed'], answer['cause']) == (allowed, verdict), answer
            counted = _verdicts(daemon)
            assert counted[verdict] == 3 and counted['granted'] == 1, counted
            assert counted['failed' if allowed else 'failed_open'] == 0, counted


def daemon_with_failing_rules_reports_unhealthy_and_the_reason():  # U14
    with Daemon(FAILING % 'open') as daemon:
        assert _health(daemon) == {'status': 'ok', 'waiting': 0}
        def is_at_last(status, good):  # health covers the last second: an earlier state may be gone
            for _ in range(20):
                daemon.check(X_Original_URI='/broken')
                for _ in range(good):
                    daemon.check(X_Original_URI='/')
            found, text = _health(daemon), daemon.ask('GET', '/metrics')[2]
            return found['status'] == status and f'weir_serve_health{{status="{status}"}} 1\n' in text and found
        assert _until(lambda: is_at_last('unhealthy', 0))['why'] == 'rules fail'
        assert _until(lambda: is_at_last('degraded', 3))['why'] == 'rules fail'  # a quarter of the requests fail
        # without requests, no rule fails
        assert 'why' not in _until(lambda: (found := _health(daemon))['status'] == 'ok' and found)


# ---- admin calls ----

def _own_address():
    """Returns an address of this machine other than loopback, or None."""
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        probe.connect(('192.0.2.1', 9))  # connecting a UDP socket sends nothing
        return probe.getsockname()[0]
    except OSError:
        return None
    finally:
        probe.close()


def _admin_statuses(host, port):
    """Returns the statuses of admin calls without a token, with wrong ones, with nearly right ones
    and with the right one."""
    statuses = []
    for token in (None, 'Bearer wrong', f'Bearer {TOKEN[:-1]}', f'Bearer {TOKEN}x', f'Basic {TOKEN}', f'Bearer {TOKEN}'):
        connection = http.client.HTTPConnection(host, port, timeout=30)
        connection.request('POST', '/v1/admin/reload', '', {'Authorization': token} if token else {})
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)
        connection.close()
    return statuses


def admin_calls_from_outside_are_401_without_the_exact_token():  # J10
    with Daemon(words=['--token-file', '{folder}/token', '--listen', '0.0.0.0:0']) as daemon:
        ports = [int(port) for port in re.findall(r'\(port (\d+)\)', daemon.lines())]
        assert _admin_statuses('127.0.0.1', ports[0]) == 5 * [401] + [200]
        outside = _own_address()
        if outside:
            assert _admin_statuses(outside, ports[1]) == 5 * [401] + [200]
        assert daemon.lines().count('reloaded') == (2 if outside else 1) and TOKEN not in daemon.lines()


def dashboard_from_outside_shows_nothing_without_the_token():  # J10
    with Daemon(words=['--token-file', '{folder}/token', '--dashboard', '0.0.0.0:0']) as daemon:
        port = int(re.search(r':(\d+)/', daemon.dashboard()).group(1))
        for host, expected in (('127.0.0.1', 200), (_own_address(), 401)):
            for token, status in ((None, expected), ('Bearer wrong-wrong-wrong-wrong', expected), (f'Bearer {TOKEN}', 200)):
                if host is None:
                    continue
                connection = http.client.HTTPConnection(host, port, timeout=30)
                connection.request('GET', '/panel/stream?view=rules', headers={'Authorization': token} if token else {})
                assert connection.getresponse().status == status, (host, token)
                connection.close()


# ---- names ----

def hostile_names_of_rules_and_keys_forge_no_line_anywhere():  # B15, J12
    rules = 'rules:\n' + ''.join(f'  - {{name: {json.dumps(name)}, match: {{path: /{n}}}, key: "header:x-key", limit: 1/h}}\n'
                                 for n, name in enumerate(HOSTILE)) + 'admission: {trusted: [127.0.0.0/8]}\n'
    with Daemon(rules) as daemon:
        for n, name in enumerate(HOSTILE):
            for key in HOSTILE:
                daemon.check(X_Original_URI=f'/{n}', X_Key=key)
                status, fields, text = daemon.check('/check?deny=429', X_Original_URI=f'/{n}', X_Key=key)
                assert status == 429 and 'set-cookie' not in fields and text in ('', 'over the limit\n'), (name, fields, text)
            answer = daemon.call('try', {'headers': {'X-Key': name}, 'target': f'/{n}'})[1]
            assert answer['rule'] == name and answer['allowed'] is False, answer
        text = daemon.ask('GET', '/metrics')[2]
        sample = re.compile(r'[a-z_]+(\{([a-z_]+="([^"\\\n]|\\[\\"n])*",?)*\})? [-+0-9.eInfNa]+')
        assert all(line.startswith('# ') or sample.fullmatch(line) for line in text.splitlines()), text
        granted = {json.loads(f'"{name}"'): int(count) for name, count in
                   re.findall(r'weir_serve_rule_decisions_total\{rule="((?:[^"\\]|\\.)*)",verdict="granted"\} (\d+)', text)}
        assert granted == {name: len(HOSTILE) for name in HOSTILE}, granted
        log = daemon.lines()
        assert not re.search('[^\n -~]', log) and all(line.startswith('weir serve: ') for line in log.splitlines()), log


if __name__ == '__main__':
    cases.main()
