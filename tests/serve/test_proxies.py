#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir behind real proxies: the service counts the admitted requests. The first argument is the
program."""
import collections
import http.client
import os
import re
import resource
import signal
import socket
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'cli'), os.path.join(HERE, '..', 'share')]

import cases  # noqa: E402
from daemon import PATIENCE_S, Daemon  # noqa: E402
from proxies import FRONTS, Activated, HaproxyFront, Imposter, Load, NginxFront, Switcher, service  # noqa: E402
from store import Redis  # noqa: E402

RULES = '''
rules:
  - {name: each, key: "header:x-test", limit: %s}
admission:
  trusted: [unix]
'''
BY_ADDRESS = '''
rules:
  - {name: narrow, match: {method: POST, host: localhost, path: /narrow}, key: ip, limit: 2/d}
  - {name: named, match: {path: /named}, key: "header:x-test", limit: 2/d, missing: refuse, deny_keys: [mallory]}
admission:
  trusted: [unix]
'''
KEYS, LIMIT = 5, 100
EXACTLY = {f'k{n}': LIMIT for n in range(KEYS)}


def _ask(front, path='/x', method='GET', connection=None, **fields):
    """Returns (status, {field name in lower case: value}, body)."""
    at = connection or http.client.HTTPConnection('localhost', front.port, timeout=PATIENCE_S)
    at.request(method, path, headers={name.replace('_', '-'): value for name, value in fields.items()})
    answer = at.getresponse()
    text = answer.read().decode()
    if connection is None:
        at.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, text


def _let_in(behind):
    """Returns how often each key reached the service. The proxy must not send weir's own requests
    to the service."""
    rows = behind.log()
    assert not [row for row in rows if '/check' in row[2]], 'the proxy asked the service instead of weir'
    return dict(collections.Counter(row[5] for row in rows))


# ---- limits ----

def limits_behind_proxies_are_exact_under_load():
    for kind in FRONTS:
        with service() as behind, Daemon(RULES % f'{LIMIT}/d') as daemon, kind(daemon, behind) as front:
            result = Load(front, KEYS, 2 * KEYS * LIMIT).result()
            assert _let_in(behind) == EXACTLY, (kind.name, _let_in(behind), result)
            assert result['allowed'] == KEYS * LIMIT and result['limited'] >= KEYS * LIMIT, (kind.name, result)
            assert result['other'] == result['bare'] == result['broken'] == 0, (kind.name, result)


def rates_behind_proxies_are_kept_under_load():
    for kind in FRONTS:
        with service() as behind, Daemon(RULES % '50/s burst=10') as daemon, kind(daemon, behind) as front:
            start = time.monotonic()
            load = Load(front, 1, 100)
            while load.counts['allowed'] < 40:
                load.wait_for_more(1)
            load.result()
            most = 10 + 50 * (time.monotonic() - start) + 1
            assert 40 <= _let_in(behind)['k0'] <= most, (kind.name, _let_in(behind), most)


# ---- responses to clients ----

def clients_of_proxies_see_limits_and_retry_after():
    for kind in FRONTS:
        with service() as behind, Daemon(RULES % '2/d') as daemon, kind(daemon, behind) as front:
            connection = http.client.HTTPConnection('localhost', front.port, timeout=PATIENCE_S)
            answers = [_ask(front, connection=connection, X_Test='k')]
            socket_of_first = connection.sock
            answers += [_ask(front, connection=connection, X_Test='k') for _ in range(3)]
            assert [status for status, _, _ in answers] == [200, 200, 429, 429], (kind.name, answers)
            assert connection.sock is socket_of_first is not None, kind.name  # the connection was kept
            connection.close()
            for n, (status, fields, text) in enumerate(answers):
                assert fields['ratelimit'].startswith(f'"each";r={max(1 - n, 0)}'), (kind.name, fields)
                assert fields['ratelimit-policy'].startswith('"each";q=2'), (kind.name, fields)
                assert (status == 200) == (text == 'served')
                assert ('retry-after' in fields) == (status == 429), (kind.name, fields)
            assert 40000 < int(answers[2][1]['retry-after']) <= 86401


def each_refusal_has_its_status_behind_proxies():  # J9
    for kind in FRONTS:
        with service() as behind, Daemon(BY_ADDRESS) as daemon, kind(daemon, behind) as front:
            assert _ask(front, '/named')[0] == 400, kind.name
            assert _ask(front, '/named', X_Test='mallory')[0] == 403, kind.name
            assert [_ask(front, '/named', X_Test='ann')[0] for _ in range(3)] == [200, 200, 429], kind.name
            assert _ask(front, '/own403')[0] == 403, kind.name  # responses of the service itself are passed on
            assert _ask(front, '/own500')[0] == 500, kind.name
            assert len(behind.log()) == 4, kind.name


def callers_cannot_forge_the_fields_of_the_proxy():  # J1
    for kind in FRONTS:
        with service() as behind, Daemon(BY_ADDRESS) as daemon, kind(daemon, behind) as front:
            lies = [{}, {'X_Original_URI': '/free', 'X_Original_Method': 'GET', 'X_Original_Host': 'free.example'},
                    {'X_Forwarded_Uri': '/free', 'X_Forwarded_Method': 'GET', 'X_Forwarded_Host': 'free.example'},
                    {'X_Forwarded_For': '192.0.2.1', 'X_Real_IP': '192.0.2.1'}, {'Forwarded': 'for=192.0.2.1'},
                    {'X_Original_URI': '/free', 'X_Forwarded_Uri': '/free', 'X_HTTP_Method_Override': 'GET'}]
            statuses = [_ask(front, '/narrow', 'POST', **lie)[0] for lie in lies]
            assert statuses == 2 * [200] + 4 * [429], (kind.name, statuses)
            assert len(behind.log()) == 2, kind.name


def pages_of_other_origins_may_call_through_a_proxy():  # M9
    page = {'Origin': 'http://evil.example', 'Sec_Fetch_Site': 'cross-site', 'Sec_Fetch_Mode': 'no-cors',
            'Content_Type': 'text/plain', 'Referer': 'http://evil.example/'}
    rules = (RULES % '9/d').replace('[unix]', '[unix, 127.0.0.0/8]')
    for kind in FRONTS:
        for over_tcp in (False, True):
            with service() as behind, Daemon(rules) as daemon, kind(daemon, behind, over_tcp=over_tcp) as front:
                for method in ('GET', 'POST'):
                    assert _ask(front, method=method, X_Test='k', **page)[0] == 200, (kind.name, over_tcp, method)
                assert 'refused' not in daemon.lines(), daemon.lines()


def upgrade_to_another_http_does_not_bypass_weir():  # J7
    """Otherwise all requests after an admitted one would bypass weir. A WebSocket is passed on."""
    other = ('h2c', 'H2C', 'HTTP/2.0', 'TLS/1.0', 'websocket, h2c', 'h2c, websocket')
    fields = {'Connection': 'Upgrade, HTTP2-Settings', 'HTTP2_Settings': 'AAMAAABkAAQAAP__', 'Sec_WebSocket_Version': '13',
              'Sec_WebSocket_Key': 'dGhlIHNhbXBsZSBub25jZQ=='}
    for kind in FRONTS:
        with Switcher() as behind, Daemon(RULES % '99/d') as daemon, kind(daemon, behind) as front:
            for wanted in other:
                # HAProxy 3 removes h2c from a list before its rules see it: a WebSocket may be
                # left.
                may_be = (101, 200, 400) if 'websocket' in wanted else (200, 400)
                assert _ask(front, X_Test='k', Upgrade=wanted, **fields)[0] in may_be, (kind.name, wanted)
            for text in behind.seen:
                assert re.findall(rb'\nupgrade:[ \t]*([^\r]*)', text.lower()) in ([], [b'websocket']), (kind.name, text)
            status = _ask(front, X_Test='k', Upgrade='websocket', **fields)[0]
            # nginx does not pass WebSockets to this service
            assert status == (200 if kind.name == 'nginx' else 101), (kind.name, status)


def heads_too_large_for_weir_do_not_bypass_it():  # J9, J15
    for kind in FRONTS:
        with service() as behind, Daemon(RULES % '1/d') as daemon, kind(daemon, behind, is_open=True) as front:
            assert _ask(front, X_Test='k')[0] == 200
            for count, size in ((1, 7000), (3, 7000), (4, 7900), (55, 9), (95, 9), (96, 9), (97, 9), (200, 100), (2, 60000)):
                connection = http.client.HTTPConnection('localhost', front.port, timeout=PATIENCE_S)
                try:
                    status = _ask(front, connection=connection, X_Test='k', **{f'X_{n}': size * 'a' for n in range(count)})[0]
                    assert status >= 400, (kind.name, count, size)
                except (ConnectionError, http.client.HTTPException):
                    pass  # the connection was closed
                connection.close()
            assert front.process.poll() is None, kind.name
            assert _ask(front, X_Test='j')[0] == 200, kind.name
            assert _let_in(behind) == {'k': 1, 'j': 1}, kind.name


# ---- weir reloads, restarts, hangs and dies ----

def reload_under_load_loses_no_request_and_grants_no_more():  # J13
    for kind in FRONTS:
        with service() as behind, Daemon(RULES % f'{LIMIT}/d') as daemon, kind(daemon, behind) as front:
            load = Load(front, KEYS, 2 * KEYS * LIMIT)
            for n in range(8):
                load.wait_for_more(50)
                daemon.write('rules: 7\n' if n % 2 else RULES % f'{LIMIT}/d' + f'# {n}\n')
                daemon.process.send_signal(signal.SIGHUP)
                daemon.wait_for('(?s)' + '.*'.join((n + 1) * ['reloaded']))
            result = load.result()
            assert _let_in(behind) == EXACTLY, (kind.name, _let_in(behind), result)
            assert result['allowed'] == KEYS * LIMIT, (kind.name, result)
            assert result['other'] == result['bare'] == result['broken'] == 0, (kind.name, result)
            assert daemon.lines().count('not reloaded') == 4, daemon.lines()


def restart_under_load_loses_no_request_and_grants_no_more():  # J13
    for kind in FRONTS:
        with service() as behind, Activated(RULES % f'{LIMIT}/d') as daemon, kind(daemon, behind) as front:
            load = Load(front, KEYS, 2 * KEYS * LIMIT)
            for _ in range(2):
                load.wait_for_more(KEYS * LIMIT // 4)
                daemon.restart()
            result = load.result()
            assert _let_in(behind) == EXACTLY, (kind.name, _let_in(behind), result)
            assert result['allowed'] == KEYS * LIMIT and result['limited'] > 0, (kind.name, result)
            assert result['other'] == result['bare'] == result['broken'] == 0, (kind.name, result)


def _state(daemon):
    with open(f'/proc/{daemon.process.pid}/stat', encoding='ascii') as file:
        return file.read().rsplit(') ', 1)[1][0]


def _silent(front, daemon, number, expected):
    """Checks that the client gets a response in time."""
    daemon.process.send_signal(number)
    while _state(daemon) not in 'TZ':  # stopped or dead
        time.sleep(0.01)
    start = time.monotonic()
    status, fields, _ = _ask(front, X_Test='k')
    assert status == expected, (front.name, number, status, front.lines())
    assert ('retry-after' in fields) == (status == 503), (front.name, fields)
    assert time.monotonic() - start < 50, front.name  # the files say 2 s; without that it would be a minute


def _until_let_in(front):
    """Waits until a request is admitted: on a busy machine weir may be too late for the proxy,
    which then refuses."""
    end = time.monotonic() + PATIENCE_S
    while _ask(front, X_Test='k')[0] != 200:
        assert time.monotonic() < end, front.name
        time.sleep(0.1)


def clients_get_a_response_when_weir_hangs_or_dies():  # J15
    for kind in FRONTS:
        for is_open in (False, True):
            if is_open and kind.name == 'caddy':
                continue  # the Caddyfile has no line for that
            with service() as behind, Daemon(RULES % '50/d') as daemon, kind(daemon, behind, is_open, as_written=True) as front:
                _until_let_in(front)
                expected = 200 if is_open else 503
                _silent(front, daemon, signal.SIGSTOP, expected)
                daemon.process.send_signal(signal.SIGCONT)
                _until_let_in(front)
                _silent(front, daemon, signal.SIGKILL, expected)
                assert len(behind.log()) == (4 if is_open else 2), kind.name


# ---- an error response of weir is not silence ----

SHARED = '''
rules:
  - {name: shared, match: {path: "/shared"}, key: "header:x-test", limit: 9/d fixed_window, share: {overshoot: 0%%, on_outage: closed}}
  - {name: own, key: "header:x-test", limit: 1/d}
admission:
  trusted: [unix]
  store: {url: "unix:%s", nodes: 1, timeout: %s}
'''


def _await_one_waiting(daemon):
    end = time.monotonic() + PATIENCE_S
    while 'weir_serve_waiting_acquires 1' not in daemon.ask('GET', '/metrics')[2]:
        assert time.monotonic() < end, 'no request is waiting'
        time.sleep(0.05)


def _waits_for_the_store(daemon):
    """Returns a connection whose request waits for the store for a minute."""
    peer = daemon.unix()
    peer.request('GET', '/check', headers={'X-Original-Method': 'GET', 'X-Original-URI': '/shared', 'X-Original-Host': 'a',
                                           'X-Test': 'first'})
    _await_one_waiting(daemon)
    return peer


def _waits_for_its_turn(daemon):
    """Returns a connection that is the only one allowed, with a waiting request."""
    peer = daemon.unix()
    question = '{"target": "/x", "headers": {"x-test": "k"}}'
    assert daemon.call('acquire', question, peer)[0] == 200
    peer.request('POST', '/v1/acquire', question, {'Content-Type': 'application/json'})
    _await_one_waiting(daemon)
    return peer


def _refused_and_then_let_in(kind, behind, daemon, why):
    """Checks a proxy that admits every request while weir is silent: first weir answers with an
    error, then it is silent."""
    with kind(daemon, behind, is_open=True) as front:
        before = len(behind.log())
        statuses = {_ask(front, '/shared', X_Test='k')[0] for _ in range(5)}
        assert statuses <= {503, 429} and len(behind.log()) == before, (kind.name, why, statuses)
        daemon.stop(signal.SIGKILL)
        assert _ask(front, '/shared', X_Test='k')[0] == 200, (kind.name, why)


def proxies_that_fail_open_do_not_admit_on_a_503_of_weir():  # M7
    for kind in (NginxFront, HaproxyFront):
        with service() as behind, Redis() as redis:
            with Daemon(SHARED % (redis.path, '1m'), ['--waiting', '1']) as daemon:
                redis.process.send_signal(signal.SIGSTOP)
                peer = _waits_for_the_store(daemon)
                _refused_and_then_let_in(kind, behind, daemon, 'too many requests wait')
                peer.close()
            redis.kill()
            with Daemon(SHARED % (redis.path, '1m')) as daemon:
                _refused_and_then_let_in(kind, behind, daemon, 'the store is away, and the rule says closed')
            with Daemon(SHARED % (redis.path, '1m'), ['--connections', '1']) as daemon:
                peer = _waits_for_its_turn(daemon)
                _refused_and_then_let_in(kind, behind, daemon, 'too many connections')
                peer.close()


def _answer(status, fields='', body=''):
    return f'HTTP/1.1 {status}\r\n{fields}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}'.encode()


def _spend_descriptors(front):
    taken = {int(name) for name in os.listdir(f'/proc/{front.process.pid}/fd')}
    least = next(number for number in range(4096) if number not in taken)
    resource.prlimit(front.process.pid, resource.RLIMIT_NOFILE, (least, least))


def proxy_without_descriptors_does_not_fail_open():  # M7
    """nginx answers 500 to its own subrequest then. The other request waits for weir, which really
    is silent."""
    with service() as behind, Daemon(RULES % '1/d') as daemon, NginxFront(daemon, behind, is_open=True, as_written=True) as front:
        peers = [socket.create_connection(('127.0.0.1', front.port), timeout=PATIENCE_S) for _ in range(2)]
        # one after the other, so that one connection to weir and one to the service stay open
        for n, peer in enumerate(peers):
            peer.sendall(b'GET /x HTTP/1.1\r\nHost: a\r\nX-Test: %d\r\n\r\n' % n)
            assert peer.recv(4096)[9:12] == b'200'
        daemon.process.send_signal(signal.SIGSTOP)
        while _state(daemon) != 'T':
            time.sleep(0.01)
        _spend_descriptors(front)
        for n, peer in enumerate(peers):
            peer.sendall(b'GET /x HTTP/1.1\r\nHost: a\r\nX-Test: %d\r\n\r\n' % n)
        statuses = sorted(peer.recv(4096)[9:12] for peer in peers)
        for peer in peers:
            peer.close()
        assert statuses == [b'200', b'503'], statuses


def responses_that_do_not_come_from_weir_count_as_silence():  # M7
    mark = 'X-Weir: 1\r\n'
    silences = {'nothing': b'', 'garbage': b'\0\1\2 weir \r\n\r\n', 'half': b'HTTP/1.1 204 No Con',
                'another proxy\'s': _answer('502 Bad Gateway', body='try later'), 'another one\'s': _answer('504 Gateway Timeout'),
                'another server\'s': _answer('503 Service Unavailable')}
    answers = {'refused': _answer('503 Service Unavailable', mark), 'failed': _answer('500 Internal Server Error', mark)}
    for kind in FRONTS:
        opens = (False,) if kind.name == 'caddy' else (False, True)
        for is_open in opens:
            with service() as behind, Imposter() as imposter, kind(imposter, behind, is_open) as front:
                for what, text in {**silences, **answers}.items():
                    imposter.text = text
                    status = _ask(front)[0]
                    # nginx reads garbage as HTTP/0.9 and, without a status, treats it as its own
                    # failure
                    lets_in = is_open and what in silences and (kind.name, what) != ('nginx', 'garbage')
                    # if weir answers with an error, Caddy passes weir's status to the client
                    wanted = (200,) if lets_in else (503, 500) if what in answers else (503,)
                    assert status in wanted, (kind.name, is_open, what, status)
                imposter.text = _answer('204 No Content', mark)
                assert _ask(front)[0] == 200, (kind.name, is_open)
                assert len(behind.log()) >= 1 + is_open * (len(silences) - 1), (kind.name, is_open)


def foreign_program_in_the_place_of_weir_admits_no_request():  # M7
    for kind in FRONTS:
        if kind.name == 'nginx':
            continue  # auth_request accepts every 2xx; the guide says so
        with service() as behind, Imposter() as imposter, kind(imposter, behind) as front:
            for status in ('204 No Content', '200 OK'):
                imposter.text = _answer(status)
                assert _ask(front)[0] == 503, (kind.name, status)
            assert behind.log() == [], kind.name


def proxies_resume_by_themselves_when_weir_is_back():  # J15
    for kind in FRONTS:
        with service() as behind, Daemon(RULES % '50/d') as daemon, kind(daemon, behind, as_written=True) as front:
            _until_let_in(front)
            _silent(front, daemon, signal.SIGKILL, 503)
            daemon.stop()
            daemon.start()
            _until_let_in(front)


if __name__ == '__main__':
    cases.main()
