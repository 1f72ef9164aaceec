#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir serve as users run it: its sockets, signals and restarts. The first argument is the program.
"""
import fcntl
import http.client
import json
import os
import re
import shutil
import resource
import select
import signal
import socket
import stat
import subprocess
import sys
import termios
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'cli')]

import cases  # noqa: E402
from daemon import JSON, PATIENCE_S, RULES, TOKEN, Daemon, said  # noqa: E402
from program import weir  # noqa: E402

QUEUE = '''
rules:
  - {name: slow, key: "header:x-user-id", limit: %s}
'''
HANDOVER = ('--handover', '{folder}/handover')
WITH_TOKEN = ('--token-file', '{folder}/token')
FLIGHT = '''
rules:
  - {name: flight, key: "header:x-user-id", limit: concurrent=2}
  '''


def _user(name, **more):
    return {'headers': {'X-User-Id': name}, 'target': '/', 'client': '192.0.2.1', **more}


# ---- /check ----

def check_admits_exactly_the_limit_of_the_rule():
    with Daemon() as daemon:
        answers = [daemon.check(X_Forwarded_For='192.0.2.7') for _ in range(8)]
        assert [status for status, _, _ in answers] == 5 * [204] + 3 * [403]
        assert answers[0][1]['ratelimit'].startswith('"five";r=4')
        assert answers[0][1]['ratelimit-policy'].startswith('"five";q=5')
        assert 1 <= int(answers[5][1]['retry-after']) <= 721
        assert answers[5][1]['x-weir-status'] == '429'
        assert daemon.check(X_Forwarded_For='192.0.2.8')[0] == 204


def refusals_are_403_for_nginx_and_429_on_request():  # J9
    with Daemon() as daemon:
        for _ in range(5):
            assert daemon.check(X_Forwarded_For='192.0.2.7')[0] == 204
        assert daemon.check(X_Forwarded_For='192.0.2.7')[0] == 403
        assert daemon.check('/check?deny=429', X_Forwarded_For='192.0.2.7')[0] == 429
        assert daemon.check('/check?deny=429', X_Forwarded_For='192.0.2.9')[0] == 204
    with Daemon(RULES.replace('5/h', '1/h'), ['--denied-status', '429']) as daemon:
        assert [daemon.check()[0] for _ in range(2)] == [204, 429]
        assert daemon.check('/check?deny=403')[0] == 403


def malformed_keys_are_400_if_the_proxy_can_pass_it_on():  # J5, J9
    rules = 'rules:\n  - {name: r, key: "header:x-user-id", limit: 5/h, missing: refuse}\n'
    with Daemon(rules) as daemon:
        for fields in ({}, {'X_User_Id': ''}, {'X_User_Id': 'a' * 5000}, {'X_User_Id': b'\xff\xfe'}):
            assert daemon.check('/check?deny=429', **fields)[0] == 400, fields
            status, answer, _ = daemon.check(**fields)
            assert (status, answer['x-weir-status']) == (403, '400'), fields
        assert daemon.check(X_User_Id='b')[0] == 204


def original_request_fields_are_used_from_trusted_peers_only():  # J1
    rules = '''
rules:
  - {name: login, match: {method: POST, path: /login, host: a.example}, key: global, limit: 1/h}
admission:
  trusted: [%s]
'''
    nginx = {'X_Original_Method': 'POST', 'X_Original_URI': '/login?next=/', 'X_Original_Host': 'a.example'}
    others = {'X_Forwarded_Method': 'POST', 'X_Forwarded_Uri': '/login', 'X_Forwarded_Host': 'a.example'}
    for fields in (nginx, others):
        with Daemon(rules % '127.0.0.0/8') as daemon:
            assert [daemon.check(**fields)[0] for _ in range(2)] == [204, 403], fields
            for name in fields:
                other = {'Method': 'PUT', 'Host': 'other.example'}.get(name.split('_')[2], '/other')
                assert daemon.check(**{**fields, name: other})[0] == 204, name
    with Daemon(rules % '10.0.0.0/8') as daemon:
        assert [daemon.check(**nginx)[0] for _ in range(3)] == 3 * [204]
        daemon.wait_for('admission: trusted does not list it; if it is yours, add it there: 127.0.0.1')
    with Daemon(rules % '10.0.0.0/8') as daemon:
        fields = {name.replace('_', '-'): value for name, value in nginx.items()}
        assert daemon.ask('GET', '/check', fields=fields, connection=daemon.unix())[0] == 204
        daemon.wait_for('add it there: unix')
    with Daemon(rules % 'unix') as daemon:
        fields = {name.replace('_', '-'): value for name, value in nginx.items()}
        assert daemon.ask('GET', '/check', fields=fields)[0] == 204
        assert [daemon.ask('GET', '/check', fields=fields, connection=daemon.unix())[0] for _ in range(2)] == [204, 403]


def request_field_sent_by_both_proxy_and_caller_is_malformed():  # J1
    rules = 'rules:\n  - {name: login, match: {path: /login}, key: global, limit: 1/h}\nadmission: {trusted: [127.0.0.0/8]}\n'
    with Daemon(rules) as daemon:
        for name in ('X-Original-URI', 'X-Forwarded-Uri', 'X-Original-Method', 'X-Original-Host'):
            for values in (('/login', '/'), ('/', '/login'), ('/login', '/login')):
                peer = daemon.raw()
                lines = ''.join(f'{name}: {value}\r\n' for value in values)
                peer.sendall(f'GET /check HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{lines}\r\n'.encode())
                answer = b''.join(iter(lambda: peer.recv(4096), b''))
                assert b' 403 ' in answer.split(b'\r\n')[0] and b'X-Weir-Status: 400' in answer, (name, values, answer)
                peer.close()
        assert 'weir_serve_requests_total{verdict="malformed"} 12' in daemon.ask('GET', '/metrics')[2]
        assert [daemon.check(X_Original_URI='/login')[0] for _ in range(2)] == [204, 403]


def proxy_that_omits_required_fields_is_refused_and_logged():  # J1, M6
    rules = 'rules:\n  - {name: login, match: {path: /login}, key: global, limit: 9/h}\nadmission: {trusted: [%s]}\n'
    whole = {'X-Original-Method': 'GET', 'X-Original-URI': '/login', 'X-Original-Host': 'a.example'}
    others = {'X-Forwarded-Method': 'GET', 'X-Forwarded-Uri': '/', 'X-Forwarded-Host': 'b.example'}

    def asked(daemon, fields):
        lines = ''.join(f'{name}: {value}\r\n' for name, value in fields.items())
        with daemon.raw() as peer:
            peer.sendall(f'GET /check HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{lines}\r\n'.encode())
            return b''.join(iter(lambda: peer.recv(4096), b'')).decode()
    with Daemon(rules % '127.0.0.0/8') as daemon:
        for name in whole:  # a missing field, as if the proxy had forgotten it
            answer = asked(daemon, {other: value for other, value in whole.items() if other != name})
            assert ' 403 ' in answer and 'X-Weir-Status: 400' in answer and 'X-Weir-Why: a required field is missing' in answer, answer
        assert daemon.lines().count('refused a request from a trusted proxy') == 1 and 'X-Original-Method or X-Forwarded-Method' in daemon.lines()
        for name in others:  # a field that the caller adds under its other name
            answer = asked(daemon, {**whole, name: others[name]})
            assert ' 403 ' in answer and 'X-Weir-Why: a field is repeated' in answer, answer
        assert daemon.lines().count('refused a request from a trusted proxy') == 1
        assert ' 204 ' in asked(daemon, whole) and ' 204 ' in asked(daemon, others)
        both = {'X-Original-Method': 'GET', 'X-Original-URI': 'http://a.example/login'}  # the target includes the host
        assert ' 204 ' in asked(daemon, both) and ' 204 ' in asked(daemon, {**both, 'X-Original-Host': 'A.example:80'})
        assert 'weir_serve_requests_total{verdict="malformed"} 6' in daemon.ask('GET', '/metrics')[2]
    with Daemon(rules % '10.0.0.0/8') as daemon:  # fields of an untrusted peer are ignored
        assert ' 204 ' in asked(daemon, {}) and ' 204 ' in asked(daemon, {**whole, **others})
        assert 'login' not in asked(daemon, whole)


def no_spelling_of_a_request_escapes_its_rule():  # M1 - M5
    rules = '''
rules:
  - {name: login, match: {method: POST, path: /login, host: "*.example.org"}, key: global, limit: 1/h}
  - {name: item, match: {path: "/api/items/*"}, key: "token:authorization", limit: 1/h, deny_keys: ["Bearer stolen"]}
admission: {trusted: [127.0.0.0/8]}
'''
    login = {'X_Original_Method': 'POST', 'X_Original_URI': '/login', 'X_Original_Host': 'a.example.org'}
    changes = [('X_Original_Method', ('post', 'POSt')),
               ('X_Original_URI', ('/Login', '/login/', '/login;x', '/login%2F', '/login?x',
                                   'http://a.example.org/login', 'HTTP://A.example.org:80/login')),
               ('X_Original_Host', ('A.EXAMPLE.org', 'a.example.org.', 'a.example.org:', 'a.example.org:8443')),
               ('X_Original_URI', ('/%6cogin', '/./login', '/a/../login', '/login%00', '/x\\login', '/x%5clogin', '/%c0%aflogin',
                                   '//login', '//x/login', '/%2Flogin', '*', 'login', 'a.example.org:80', 'http://b.example.org/login', 'http://u@a.example.org/login')),
               ('X_Original_Host', ('a.example.org:x', 'a.example.org:0x50', 'a.example.org:80:80', 'a.example.org:-1',
                                    'a.example.org:80,', 'a.example.org:99999', 'a.example.org..', 'u@a.example.org', ''))]
    with Daemon(rules) as daemon:
        assert daemon.check('/check?deny=429', **login)[0] == 204
        for n, (name, values) in enumerate(changes):
            for value in values:
                status, fields, _ = daemon.check('/check?deny=429', **{**login, name: value})
                assert (status, 'x-weir-why' in fields) == ((429, False) if n < 3 else (400, True)), (name, value, status)
        item = {'X_Original_URI': '/api/items/1', 'X_Forwarded_For': '192.0.2.1'}
        for scheme in ('Bearer ', 'bearer ', 'BEARER  ', 'Bearer\t', 'Token '):
            assert daemon.check('/check?deny=429', **item, Authorization=f'{scheme}stolen')[0] == 403, scheme
        assert [daemon.check('/check?deny=429', **item, Authorization=f'{scheme}mine')[0]
                for scheme in ('Bearer ', 'bearer ', 'BEARER  ', 'Bearer\t')] == [204, 429, 429, 429]
        for value in ('Bearer stolen x', 'Bearer "stolen"', 'Bearer stolen,', 'Basic QR=='):
            assert daemon.check('/check?deny=429', **item, Authorization=value)[0] == 400, value
        status, told = daemon.call('try', {'method': 'post', 'target': '/a/../login', 'host': 'a.example.org'})
        assert (status, told) == (200, {'allowed': False, 'cause': 'malformed', 'status': 400,
                                        'why': 'the path has a part "." or ".."'})


def forged_client_addresses_are_not_used():  # J1
    with Daemon(RULES.replace('[127.0.0.0/8, unix]', '[10.0.0.0/8]')) as daemon:
        statuses = [daemon.check(X_Forwarded_For=f'192.0.2.{n}', X_Real_IP=f'192.0.2.{n}')[0] for n in range(8)]
        assert statuses == 5 * [204] + 3 * [403]
    with Daemon() as daemon:  # a trusted proxy appends its peer; the entries before are the caller's invention
        statuses = [daemon.check(X_Forwarded_For=f'192.0.2.{n}, 198.51.100.1')[0] for n in range(8)]
        assert statuses == 5 * [204] + 3 * [403]


# ---- the API ----

def duration_of_checks_is_in_the_metrics():
    with Daemon() as daemon:
        connection = daemon.tcp()
        for _ in range(160):
            daemon.ask('GET', '/check', connection=connection)
        _, _, text = daemon.ask('GET', '/metrics', connection=connection)
        connection.close()
        counts = [int(count) for count in re.findall(r'weir_serve_check_seconds_bucket{le="[^"]+"} (\d+)', text)]
        seconds = float(re.search(r'weir_serve_check_seconds_sum (\S+)', text).group(1))
        assert 0 < float(re.search(r'^weir_serve_longest_answer_seconds (\S+)', text, re.M).group(1)) < 30, text
        assert counts == sorted(counts) and counts[-1] == 10, counts  # every 16th check is measured
        assert 0 < seconds < 10, seconds


def api_decides_by_request_and_by_key():
    with Daemon() as daemon:
        status, answer = daemon.call('try', {'client': '192.0.2.1', 'target': '/'})
        assert status == 200 and answer['allowed'] and answer['rule'] == 'five'
        assert (answer['limit'], answer['remaining']) == (5, 4)
        answer = daemon.call('try', {'rule': 'five', 'key': '192.0.2.1', 'cost': 4})[1]
        assert answer['allowed'] and answer['remaining'] == 0
        answer = daemon.call('try', {'client': '192.0.2.1', 'target': '/'})[1]
        assert not answer['allowed'] and answer['cause'] == 'limited' and answer['status'] == 429
        assert 0 < answer['retry_after_ms'] <= 720000


def batches_are_decided_in_order():
    with Daemon() as daemon:
        questions = [{'rule': 'five', 'key': 'k'}] * 7 + [{'rule': 'none', 'key': 'k'}, {'client': '192.0.2.5'}]
        for verb in ('batch', 'try'):
            status, answers = daemon.call(verb, questions)
            assert status == 200 and len(answers) == 9
            if verb == 'batch':
                assert [a['allowed'] for a in answers[:7]] == 5 * [True] + 2 * [False]
            assert answers[7] == {'error': 'there is no such rule'} and answers[8]['allowed']
        assert daemon.call('batch', [])[1] == []
        assert len(daemon.call('batch', [{'rule': 'five', 'key': str(n)} for n in range(256)])[1]) == 256
        assert daemon.call('batch', [{'rule': 'five', 'key': 'x'}] * 257)[0] == 400
        assert daemon.call('try', {'rule': 'five', 'key': 'x'})[1]['remaining'] == 4  # the refused list charged no key


def invalid_api_requests_are_refused_and_charge_no_key():  # J5, J8
    key = '"rule": "five", "key": "k"'
    wrong = ['', '{', '[', 'null', '7', '{}x', '{"rule": "five"}', '{"key": "k"}', '[{' + key + '}', '{' + key + ',}',
             '{' + key + ', "cost": 0}', '{' + key + ', "cost": -1}', '{' + key + ', "cost": 1e18}',
             '{' + key + ', "cost": 1.5}', '{' + key + ', "cost": NaN}', '{' + key + ', "cost": "1"}',
             '{' + key + ', "cost": 4294967296}', '{' + key + ', "cost": 01}', '{' + key + ', "cost": true}',
             '{' + key + ', "limit": 1000}', '{' + key + ', "key": "k"}', '{' + key + ', "client": "192.0.2.1"}',
             '{"rule": "none", "key": "k"}', '{"rule": "five", "key": ""}', '{"rule": "five", "key": 7}',
             '{"rule": "five", "key": "' + 'k' * 1000000 + '"}', '{"rule": "five", "key": "\x00"}',
             '{"rule": "five", "key": "\\ud800"}', '{"rule": "five", "key": "\\x"}', '{"rule": "five\\u0000", "key": "k"}',
             '{"headers": ["x"]}', '{"headers": {"a": 1}}', '[' * 100000, '{"a":' * 100000]
    with Daemon() as daemon:
        for text in wrong:
            status, answer = daemon.call('try', text)
            assert status == 400 and answer['error'], text[:80]
        assert daemon.call('try', '{' + key + '}')[1]['remaining'] == 4
        assert daemon.ask('GET', '/v1/try')[0] == 405
        assert daemon.ask('POST', '/v1/none')[0] == 404
        assert daemon.ask('GET', '/none')[0] == 404


def spellings_of_one_key_are_one_key():  # J5
    with Daemon() as daemon:
        texts = ['{"rule": "five", "key": "a/b"}', '{"rule":"five","key":"a\\/b"}', '{"rule": "five", "key": "\\u0061/b"}']
        assert [daemon.call('try', text)[1]['remaining'] for text in texts] == [4, 3, 2]
        for client, left in (('192.0.2.1', 4), ('::ffff:192.0.2.1', 3), ('192.0.2.1:80', 2)):
            assert daemon.call('try', {'client': client})[1]['remaining'] == left


def permits_in_flight_are_freed_by_release():
    with Daemon(FLIGHT) as daemon:
        first, second = daemon.call('try', _user('u'))[1], daemon.call('try', _user('u'))[1]
        third = daemon.call('try', _user('u'))[1]
        assert first['allowed'] and second['allowed'] and not third['allowed']
        # the time of a release is unknown
        assert 'reset_ms' not in first and 'reset_ms' not in third and 'retry_after_ms' not in third
        assert daemon.call('release', {'hold': first['hold']}) == (200, {'ok': True})
        assert daemon.call('release', {'hold': first['hold']})[0] == 404  # only once
        assert daemon.call('try', _user('u'))[1]['allowed']
        for text in ('{}', '{"hold": "x"}', '{"hold": 1}', '{"hold": "0"}', '{"hold": "1", "used": 1}',
                     '{"hold": "1", "key": "k"}', '{"hold": "1"}\0', '[{"hold": "1"}]', '{"hold": "1"}{}'):
            assert daemon.call('release', text)[0] == 400, text


def reservations_are_committed_or_cancelled():
    with Daemon() as daemon:
        question = {'client': '192.0.2.1', 'target': '/'}
        hold = daemon.call('reserve', question)[1]['hold']
        assert daemon.call('cancel', {'hold': hold})[0] == 200
        assert daemon.call('try', question)[1]['remaining'] == 4
        hold = daemon.call('reserve', question)[1]['hold']
        assert daemon.call('commit', {'hold': hold})[0] == 400
        assert daemon.call('commit', {'hold': hold, 'used': 3})[0] == 200
        assert daemon.call('commit', {'hold': hold, 'used': 3})[0] == 404
        assert daemon.call('try', question)[1]['remaining'] == 0  # 5 - 1 - 3 - 1


# ---- waiting ----

def _acquire(daemon, user, timeout_ms, answers, name):
    status, answer = daemon.call('acquire', _user(user, timeout_ms=timeout_ms))
    answers.append((name, status, answer, time.monotonic()))


def acquires_are_granted_in_order_of_arrival():
    with Daemon(FLIGHT.replace('=2', '=1')) as daemon:
        hold, waiters = daemon.call('try', _user('u'))[1]['hold'], []
        for n in range(10):
            waiters.append(daemon.tcp())
            waiters[-1].request('POST', '/v1/acquire', json.dumps(_user('u', timeout_ms=60000)), JSON)
            _wait_for_waiting(daemon, n + 1)
        for n, waiter in enumerate(waiters):
            assert daemon.call('release', {'hold': hold})[0] == 200
            ready, _, _ = select.select([other.sock for other in waiters[n:]], [], [], PATIENCE_S)
            assert ready == [waiter.sock], n
            hold = json.loads(waiter.getresponse().read())['hold']
            waiter.close()


def acquires_are_not_granted_before_the_rule_allows():
    with Daemon(QUEUE % '20/s burst=1') as daemon:
        answers = []
        start = time.monotonic()
        threads = [threading.Thread(target=_acquire, args=(daemon, 'u', 60000, answers, n)) for n in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(status == 200 and answer['allowed'] for _, status, answer, _ in answers), answers
        came = sorted(at - start for *_, at in answers)
        assert all(at >= n / 20 - 0.01 for n, at in enumerate(came)), came


def acquire_times_out_and_a_client_that_leaves_frees_its_place():  # K3
    with Daemon(FLIGHT) as daemon:
        holds = [daemon.call('try', _user('u'))[1]['hold'] for _ in range(2)]
        status, answer = daemon.call('acquire', _user('u', timeout_ms=100))
        assert status == 200 and not answer['allowed'] and answer['cause'] == 'timed_out'
        leaver = daemon.tcp()
        leaver.request('POST', '/v1/acquire', json.dumps(_user('u', timeout_ms=60000)), JSON)
        _wait_for_waiting(daemon, 1)
        leaver.sock.close()
        _wait_for_waiting(daemon, 0)
        answers = []
        thread = threading.Thread(target=_acquire, args=(daemon, 'u', 60000, answers, 0))
        thread.start()
        _wait_for_waiting(daemon, 1)
        assert daemon.call('release', {'hold': holds[0]})[0] == 200
        thread.join()
        assert answers[0][2]['allowed'] and answers[0][2]['hold']


def _wait_for_waiting(daemon, count):
    end = time.monotonic() + PATIENCE_S
    while json.loads(daemon.ask('GET', '/healthz')[2])['waiting'] != count:
        assert time.monotonic() < end
        time.sleep(0.01)


def number_of_waiting_acquires_is_limited():
    with Daemon(QUEUE % '1/h', ['--waiting', '4']) as daemon:  # half of the places for each listening address
        assert daemon.call('try', _user('u'))[1]['allowed']
        waiters = []
        for n in range(2):
            waiters.append(daemon.tcp())
            waiters[-1].request('POST', '/v1/acquire', json.dumps(_user('u', timeout_ms=60000)), JSON)
            _wait_for_waiting(daemon, n + 1)
        assert daemon.call('acquire', _user('u', timeout_ms=60000))[0] == 503
        for waiter in waiters:
            waiter.close()


# ---- admin ----

def admin_calls_need_the_token_and_an_own_host_name():  # J10
    key = '{"rule": "five", "key": "192.0.2.1"}'
    with Daemon() as daemon:
        assert daemon.admin('reset', key) == 403  # admin calls are off by default
    with Daemon(words=[*WITH_TOKEN, '--listen-name', 'weir.example']) as daemon:
        for _ in range(6):
            last = daemon.check(X_Forwarded_For='192.0.2.1')[0]
        assert last == 403
        assert daemon.admin('reset', key, Authorization='') == 401
        assert daemon.admin('reset', key, Authorization='Bearer wrong') == 401
        assert daemon.admin('reset', key, Host='evil.example') == 403
        assert daemon.admin('reset', key, Origin='http://evil.example') == 403
        assert daemon.admin('reload', Host='evil.example') == 403
        assert daemon.check(X_Forwarded_For='192.0.2.1')[0] == 403  # the refused calls had no effect
        assert daemon.ask('GET', '/v1/admin/reset', fields={'Authorization': f'Bearer {TOKEN}'})[0] == 405
        for text in ('', '{"rule": "five"}', f'[{key}]', key + 'x', key + '\0', key + key, key[:-1] + ', "cost": 1}'):
            assert daemon.admin('reset', text) == 400, text
        assert daemon.admin('reset', '{"rule": "five", "key": "nobody"}') == 404
        assert daemon.admin('reset', key, Host='weir.example') == 200
        assert daemon.check(X_Forwarded_For='192.0.2.1')[0] == 204
        assert TOKEN not in daemon.lines()


PATHS = ('/check', '/check?deny=429', '/v1/try', '/v1/batch', '/v1/acquire', '/v1/reserve', '/v1/release', '/v1/admin/reset',
         '/v1/admin/reload', '/metrics', '/healthz', '/', '/nothing')
FOREIGN = ({'Host': 'evil.example'}, {'Host': 'localhost.evil.example'}, {'Origin': 'http://evil.example'}, {'Origin': 'null'},
           {'Origin': 'http://127.0.0.1:1'}, {'Sec-Fetch-Site': 'cross-site'}, {'Sec-Fetch-Site': 'same-site'})


def pages_of_other_origins_are_refused_by_the_daemon():  # M9
    with Daemon(words=[*WITH_TOKEN, '--dashboard', '127.0.0.1:0']) as daemon:
        board = http.client.HTTPConnection(*re.search(r'//(.*):(\d+)/', daemon.dashboard()).groups(), timeout=30)
        paths = [(daemon.tcp(), path) for path in PATHS]
        paths += [(board, path) for path in ('/', '/app.js', '/panel/stream?view=rules', '/panel/command', '/panel/token', '/nothing')]
        for connection, path in paths:
            for fields in FOREIGN:
                for method, body in (('GET', None), ('POST', '{}')):
                    answer = daemon.ask(method, path, body, {**JSON, 'Authorization': f'Bearer {TOKEN}', **fields}, connection)
                    assert answer[0] == 403, (path, method, fields, answer)
            for kind in ('text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', ''):
                assert daemon.ask('POST', path, '{}', {'Content-Type': kind}, connection)[0] == 415, (path, kind)
        assert daemon.ask('GET', '/metrics', connection=daemon.unix())[2].count('weir_serve_requests_total{verdict="granted"} 0\n') == 1
        assert daemon.lines().count('refused a request that a page of another site may have sent') == 1 and '--listen-name' in daemon.lines()


def requests_by_curl_and_by_configured_name_are_answered():  # M9
    question = '{"rule": "five", "key": "ann"}'
    with Daemon(words=['--listen-name', 'weir']) as daemon:
        url = f'http://127.0.0.1:{daemon.port}'

        def curl(*words):
            run = subprocess.run(['curl', '-s', '-w', '\n%{http_code}', *words], capture_output=True, text=True, timeout=60, check=True)
            return run.stdout.rsplit('\n', 1)
        request = [word for name, value in said({}).items() for word in ('-H', f'{name}: {value}')]
        assert curl(f'{url}/check', *request)[1] == '204'
        assert curl('--unix-socket', daemon.path, 'http://whatever/check', *request)[1] == '204'
        assert curl('--json', question, f'{url}/v1/try')[1] == '200'
        assert curl('--resolve', f'weir:{daemon.port}:127.0.0.1', f'http://weir:{daemon.port}/metrics')[1] == '200'
        text, status = curl('-d', question, f'{url}/v1/try')
        assert status == '415' and 'Content-Type: application/json' in text, text  # the error says what would be right
        text, status = curl('-H', 'Host: elsewhere', f'{url}/check')
        assert status == '403' and '--listen-name' in text, text
        peer = daemon.raw()
        peer.sendall(b'OPTIONS /healthz HTTP/1.0\r\n\r\n')  # as some proxies check that a server is alive
        assert peer.recv(100).startswith(b'HTTP/1.1 200')
        peer.close()


def token_that_others_may_read_is_refused():  # V10
    with Daemon() as daemon:
        os.chmod(f'{daemon.folder}/token', 0o644)
        run = weir('serve', '--config', daemon.config, '--token-file', f'{daemon.folder}/token')
        assert run.returncode == 2 and 'can be read by others' in run.stderr


# ---- reloading ----

def invalid_file_changes_nothing_on_reload_and_is_reported():  # J13
    with Daemon() as daemon:
        for _ in range(3):
            daemon.check(X_Forwarded_For='192.0.2.1')
        daemon.write(RULES.replace('5/h', '5/parsec'))
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for(r'not reloaded.*weir.yaml')
        assert [daemon.check(X_Forwarded_For='192.0.2.1')[0] for _ in range(3)] == [204, 204, 403]
        assert json.loads(daemon.ask('GET', '/healthz')[2])['status'] == 'degraded'
        assert 'weir_serve_reloads_total{result="failed"} 1' in daemon.ask('GET', '/metrics')[2]
        daemon.write(RULES.replace('5/h', '6/h'))
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for(r'weir serve: reloaded')
        assert json.loads(daemon.ask('GET', '/healthz')[2])['status'] == 'ok'
        statuses = [daemon.check(X_Forwarded_For='192.0.2.1')[0] for _ in range(3)]
        assert statuses.count(204) <= 1  # used permits stay used
        os.unlink(daemon.config)
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for(r'(?s)reloaded.*not reloaded')
        assert daemon.check(X_Forwarded_For='192.0.2.2')[0] == 204


def reload_by_the_api_returns_the_error():  # J13
    with Daemon(words=WITH_TOKEN) as daemon:
        assert daemon.admin('reload') == 200
        daemon.write('rules: 7\n')
        fields = {'Authorization': f'Bearer {TOKEN}'}
        status, _, text = daemon.ask('POST', '/v1/admin/reload', '', fields)
        assert status == 409 and 'weir.yaml:1' in json.loads(text)['error']
        assert 'weir_serve_reloads_total{result="failed"} 1' in daemon.ask('GET', '/metrics')[2]  # by any reload
        assert daemon.check()[0] == 204


def trusted_proxies_are_reloaded_too():
    with Daemon(RULES.replace('5/h', '1/h')) as daemon:
        assert [daemon.check(X_Forwarded_For=f'192.0.2.{n}')[0] for n in range(3)] == 3 * [204]
        daemon.write(RULES.replace('5/h', '1/h').replace('[127.0.0.0/8, unix]', '[]'))
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for(r'weir serve: reloaded')
        assert [daemon.check(X_Forwarded_For=f'192.0.2.{n}')[0] for n in range(3, 6)] == [204, 403, 403]


def reload_to_a_lower_limit_applies_to_waiting_requests():  # K7
    with Daemon(QUEUE % '2/s burst=1') as daemon:
        answers, start = [], time.monotonic()
        threads = [threading.Thread(target=_acquire, args=(daemon, 'u', 2500, answers, n)) for n in range(12)]
        for thread in threads:
            thread.start()
        daemon.write(QUEUE % '1/h burst=1')
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for('reloaded')
        before_s = time.monotonic() - start
        for thread in threads:
            thread.join()
        allowed = sum(answer['allowed'] for _, _, answer, _ in answers)
        assert allowed <= 1 + 2 * before_s, (allowed, before_s)


# ---- stopping and starting ----

def state_outlives_the_process():
    with Daemon(words=['--state', '{folder}/state']) as daemon:
        assert [daemon.check(X_Forwarded_For='192.0.2.1')[0] for _ in range(5)] == 5 * [204]
        assert daemon.stop() == 0
        assert stat.S_IMODE(os.stat(f'{daemon.folder}/state').st_mode) == 0o600
        daemon.start()
        assert daemon.check(X_Forwarded_For='192.0.2.1')[0] == 403
        assert daemon.check(X_Forwarded_For='192.0.2.2')[0] == 204


def state_is_saved_periodically():
    with Daemon(words=['--state', '{folder}/state', '--save-every', '1s']) as daemon:
        state = f'{daemon.folder}/state'
        for _ in range(5):
            daemon.check(X_Forwarded_For='192.0.2.1')
        end = time.monotonic() + PATIENCE_S
        before = time.time()
        while not os.path.exists(state) or os.stat(state).st_mtime < before:
            assert time.monotonic() < end
            time.sleep(0.05)
        daemon.stop(signal.SIGKILL)
        daemon.start()  # the socket left behind is replaced
        assert daemon.check(X_Forwarded_For='192.0.2.1')[0] == 403


def failed_final_save_shows_in_the_exit_status():
    with Daemon() as daemon:
        daemon.stop()
        os.mkdir(f'{daemon.folder}/there')
        daemon.start('--state', f'{daemon.folder}/there/state', '--save-every', '1s')
        shutil.rmtree(f'{daemon.folder}/there')
        daemon.wait_for('could not be saved')  # reported once, however often it fails
        assert daemon.stop() == 1
        lines = open(f'{daemon.folder}/log', encoding='utf-8').read()
        assert lines.count('could not be saved') == 2, lines


def hanging_disk_blocks_neither_decisions_nor_reloads():
    with Daemon() as daemon:
        daemon.stop()
        state = f'{daemon.folder}/state'
        os.mkfifo(f'{state}.new')  # where the next save is written
        pipe = os.open(f'{state}.new', os.O_RDONLY | os.O_NONBLOCK)
        daemon.start('--state', state, '--save-every', '1s', '--token-file', f'{daemon.folder}/token')
        for batch in range(16):  # more keys than a pipe can hold
            daemon.call('batch', [{'rule': 'five', 'key': f'{batch}-{n}-{"k" * 32}'} for n in range(256)])
        end, waiting = time.monotonic() + PATIENCE_S, bytearray(4)
        while int.from_bytes(waiting, sys.byteorder) < 60000:  # nearly full: the save blocks
            fcntl.ioctl(pipe, termios.FIONREAD, waiting)
            assert time.monotonic() < end, 'the state is not saved'
            time.sleep(0.05)
        for _ in range(2):
            assert daemon.admin('reload') == 200
            assert daemon.check()[0] == 204
        os.close(pipe)


def damaged_state_is_refused_and_not_changed():
    with Daemon() as daemon:
        daemon.stop()
        with open(f'{daemon.folder}/state', 'wb') as file:
            file.write(b'\x00garbage' * 100)
        run = weir('serve', '--config', daemon.config, '--state', f'{daemon.folder}/state', '--listen', '127.0.0.1:0')
        assert run.returncode == 1 and run.stderr.count('\n') == 1
        assert os.path.getsize(f'{daemon.folder}/state') == 800


def _wait_until(is_so):
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def _wait_until_read(peer):
    """Waits until the daemon has read everything sent on this connection, according to the kernel.
    """
    ours, theirs = peer.getsockname()[1], peer.getpeername()[1]
    line = re.compile(rf' \w+:{theirs:04X} \w+:{ours:04X} \w+ \w+:(\w+)')

    def is_read():
        with open('/proc/net/tcp', encoding='ascii') as file:
            return int(line.search(file.read())[1], 16) == 0
    _wait_until(is_read)


def _wait_until_ending(daemon):
    """Waits until the daemon has received the signal to end: from then on it ignores SIGHUP."""
    def is_ending():
        with open(f'/proc/{daemon.process.pid}/status', encoding='ascii') as file:
            return int(re.search(r'SigIgn:\s(\w+)', file.read())[1], 16) >> signal.SIGHUP - 1 & 1
    _wait_until(is_ending)


def daemon_answers_pending_requests_before_it_ends():
    with Daemon(FLIGHT) as daemon:
        holds = [daemon.call('try', _user('u'))[1]['hold'] for _ in range(2)]
        answers = []
        thread = threading.Thread(target=_acquire, args=(daemon, 'u', 60000, answers, 0))
        thread.start()
        _wait_for_waiting(daemon, 1)
        releaser = daemon.raw()
        releaser.sendall(b'POST /v1/release HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n'
                         % len(json.dumps({'hold': holds[0]})))  # half a request
        _wait_until_read(releaser)
        daemon.process.send_signal(signal.SIGTERM)
        _wait_until_ending(daemon)
        assert daemon.process.poll() is None
        releaser.sendall(json.dumps({'hold': holds[0]}).encode())
        assert b'200 OK' in releaser.recv(65536)
        thread.join()
        assert answers[0][2]['allowed']
        assert daemon.process.wait(timeout=PATIENCE_S) == 0
        assert not os.path.exists(daemon.path)


def second_signal_ends_the_daemon_at_once():
    with Daemon(QUEUE % '1/h') as daemon:
        daemon.call('try', _user('u'))
        waiter = daemon.tcp()
        waiter.request('POST', '/v1/acquire', json.dumps(_user('u', timeout_ms=50000)), JSON)
        _wait_for_waiting(daemon, 1)
        daemon.process.send_signal(signal.SIGTERM)
        _wait_until_ending(daemon)
        daemon.process.send_signal(signal.SIGHUP)  # too late to have an effect, but no reason to die
        time.sleep(0.2)
        assert daemon.process.poll() is None
        assert daemon.stop() == -signal.SIGTERM


def killed_daemon_leaves_no_client_waiting():  # J15
    with Daemon(QUEUE % '1/h') as daemon:
        daemon.call('try', _user('u'))
        waiter = daemon.raw()
        body = json.dumps(_user('u', timeout_ms=50000)).encode()
        waiter.sendall(b'POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' % (len(body), body))
        _wait_for_waiting(daemon, 1)
        daemon.process.kill()
        try:
            assert waiter.recv(100) == b''
        except ConnectionResetError:
            pass


def inherited_sockets_are_served():
    listener = socket.create_server(('127.0.0.1', 0))
    port = listener.getsockname()[1]
    os.dup2(listener.fileno(), 3)
    script = 'import os,sys; os.environ["LISTEN_PID"]=str(os.getpid()); os.execv(sys.argv[1], sys.argv[1:])'
    with Daemon() as daemon:
        process = subprocess.Popen([sys.executable, '-c', script, os.path.abspath(sys.argv[1]), 'serve', '--config',
                                    daemon.config], env={**os.environ, 'LISTEN_FDS': '1'}, pass_fds=(3,),
                                   stderr=subprocess.DEVNULL)
        try:
            daemon.port = port
            assert daemon.check()[0] == 204
        finally:
            process.terminate()
            assert process.wait(timeout=PATIENCE_S) == 0
    os.close(3)


def failed_starts_report_the_reason():
    with Daemon() as daemon:
        table = {('--config', '/nowhere/weir.yaml'): 'weir.yaml', (): '--config',
                 ('--config', daemon.config, '--listen', 'nowhere:80'): 'listening address',
                 ('--config', daemon.config, '--listen', f'127.0.0.1:{daemon.port}'): 'in use: another program listens there; stop it',
                 ('--config', daemon.config, '--listen', f'unix:{daemon.path}'): 'in use',
                 ('--config', daemon.config, '--socket-mode', '0777'): '0600',
                 ('--config', daemon.config, '--socket-group', 'nosuchgroup'): 'nosuchgroup',
                 ('--config', daemon.config, '--token-file', '/nowhere/token'): '--token-file: cannot create "/nowhere/token": its folder does not exist; create it first',
                 ('--config', daemon.config, '--listen', 'unix:/proc/x'): '"/proc/x": ',
                 ('--config', daemon.config, '--listen', 'unix:/nowhere/s'): '"/nowhere/s": its folder does not exist',
                 ('--config', daemon.config, '--state', '/nowhere/state'): '--state: /nowhere/state: its folder does not exist; create it',
                 ('--config', daemon.config, '--state', daemon.folder): f'--state: {daemon.folder}: it is a folder; name a file in it',
                 ('--config', daemon.config, '--dashboard', 'nowhere'): '--dashboard: listening address'}
        for words, expected in table.items():
            run = weir('serve', *words)
            assert run.returncode in (1, 2) and expected in run.stderr, (words, run)
            assert run.stderr.count('\n') == 1, run.stderr
        assert daemon.check()[0] == 204


# ---- handovers ----

class _Crowd:
    """Clients that send requests over kept connections without pause, and count the statuses."""

    def __init__(self, daemon, count):
        self.daemon, self.ends, self.failed, self.statuses = daemon, False, [], []
        self.threads = [threading.Thread(target=self._run, args=(n,)) for n in range(count)]
        for thread in self.threads:
            thread.start()

    def _run(self, number):
        connection = self.daemon.unix() if number % 2 else self.daemon.tcp()
        try:
            while not self.ends:
                fields = {**said({}), 'X-Forwarded-For': '192.0.2.1'}
                self.statuses.append(self.daemon.ask('GET', '/check', fields=fields, connection=connection)[0])
            connection.close()
        except Exception as error:
            self.failed.append(error)

    def stop(self):
        self.ends = True
        for thread in self.threads:
            thread.join()


def restarts_under_load_lose_no_request_and_grant_no_more():  # F10, V8
    with Daemon(RULES.replace('5/h', '2000/h'), HANDOVER) as daemon:
        began_at = time.monotonic()
        crowd = _Crowd(daemon, 8)
        for _ in range(3):
            time.sleep(0.3)
            daemon.start_after()
        while len(crowd.statuses) < 2500 and not crowd.failed:
            time.sleep(0.05)
        crowd.stop()
        assert crowd.failed == []
        granted = crowd.statuses.count(204)
        came_back = 2000 / 3600 * (time.monotonic() - began_at)
        assert 2000 <= granted <= 2000 + came_back, (granted, came_back)
        assert set(crowd.statuses) == {204, 403}
        assert daemon.stop() == 0
        assert not os.path.exists(daemon.path) and not os.path.exists(f'{daemon.folder}/handover')


def each_of_many_keys_is_granted_exactly_its_limit_over_handovers():
    rules = "rules:\n  - {name: a, key: 'header:x-key', limit: 200/d}\n"
    with Daemon(rules, HANDOVER) as daemon:
        for batch in range(80):  # copying these takes a while, in which other keys are decided
            daemon.call('batch', [{'rule': 'a', 'key': f'{batch}-{n}'} for n in range(256)])
        granted, ends = [0] * 8, threading.Event()

        def ask(number):
            connection = daemon.tcp()
            while not ends.is_set():
                granted[number] += daemon.call('try', {'rule': 'a', 'key': f'busy-{number}'}, connection)[1]['allowed']

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            before = sum(granted)
            daemon.start_after()
            assert sum(granted) >= before
        until = time.monotonic() + 120
        while sum(granted) < 8 * 200 and all(thread.is_alive() for thread in threads) and time.monotonic() < until:
            time.sleep(0.05)
        ends.set()
        for thread in threads:
            thread.join()
        assert granted == [200] * 8, granted
        assert [daemon.call('try', {'rule': 'a', 'key': key, 'cost': 200})[1]['allowed'] for key in ('7-7', 'new')] == [False, True]


def _stranger(daemon):
    """Returns a connection to the handover socket, where the next daemon asks for the state."""
    stranger = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    stranger.settimeout(PATIENCE_S)
    stranger.connect(f'{daemon.folder}/handover')
    return stranger


def daemon_told_to_end_does_not_wait_for_a_handover():
    with Daemon(words=HANDOVER) as daemon:
        stranger = _stranger(daemon)
        while stranger.recv(1000)[:1] != b'R':
            pass
        stranger.send(b'P')
        assert stranger.recv(1000) == b'S'  # from now on this client is silent
        assert daemon.check()[0] == 204
        assert daemon.stop() == 0
        stranger.close()


# as after SIGSTOP, when the kernel does not restart a call with a time limit
def handover_continues_after_an_interrupted_call():
    with Daemon(words=HANDOVER) as daemon:
        stranger = _stranger(daemon)
        while stranger.recv(1000)[:1] != b'R':
            pass
        for _ in range(10):  # the first signals may come before the call has started
            daemon.process.send_signal(signal.SIGSTOP)
            os.waitpid(daemon.process.pid, os.WUNTRACED)
            daemon.process.send_signal(signal.SIGCONT)
            os.waitpid(daemon.process.pid, os.WCONTINUED)
        stranger.send(b'P')
        assert stranger.recv(1000) == b'S'
        stranger.close()


def lack_of_descriptors_defers_a_handover():  # E5
    with Daemon(words=HANDOVER) as daemon:
        first = _stranger(daemon)
        # the daemon does not wait for another connection, which would hold a descriptor
        assert first.recv(1000)[:1] == b'L'
        limits = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (1, limits[1]))
        second = _stranger(daemon)
        first.close()
        assert not select.select([second], [], [], 0.3)[0], 'the connection was accepted without a descriptor'
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, limits)
        assert second.recv(1000)[:1] == b'L'
        second.close()
        daemon.start_after()
        assert daemon.check()[0] == 204


def waiting_requests_are_handed_over():
    with Daemon(QUEUE % '1/h burst=1', HANDOVER) as daemon:
        assert daemon.call('try', _user('u'))[1]['allowed']
        half = daemon.raw()
        body = json.dumps({'rule': 'slow', 'key': 'half'}).encode()
        half.sendall(b'POST /v1/try HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n' % len(body) + body[:9])
        answers = []
        thread = threading.Thread(target=_acquire, args=(daemon, 'u', 60000, answers, 0))
        thread.start()
        _wait_for_waiting(daemon, 1)
        daemon.start_after()
        half.sendall(body[9:])
        assert b'"allowed":true' in half.recv(65536)
        _wait_for_waiting(daemon, 1)
        daemon.write(QUEUE % '100/s burst=1')
        daemon.process.send_signal(signal.SIGHUP)
        thread.join()
        assert answers[0][2]['allowed'], answers


def permits_in_flight_are_handed_over():
    with Daemon(FLIGHT, HANDOVER) as daemon:
        holds = [daemon.call('acquire', _user('u', timeout_ms=60000))[1]['hold'] for _ in range(2)]
        kept, answers = daemon.tcp(), []
        assert daemon.call('try', _user('u'), kept)[1]['allowed'] is False
        thread = threading.Thread(target=_acquire, args=(daemon, 'u', 60000, answers, 0))
        thread.start()
        _wait_for_waiting(daemon, 1)
        for _ in range(2):  # from the first daemon to the second, and on to a third
            daemon.start_after()
            assert daemon.call('try', _user('u'), kept)[1]['allowed'] is False
        _wait_for_waiting(daemon, 1)
        assert daemon.call('release', {'hold': holds[0]}, kept) == (200, {'ok': True})
        thread.join()
        assert answers[0][2]['allowed'], answers
        assert daemon.call('release', {'hold': holds[0]}, kept)[0] == 404  # only once
        assert daemon.call('try', _user('u'), kept)[1]['allowed'] is False
        for hold in (holds[1], answers[0][2]['hold']):
            assert daemon.call('release', {'hold': hold})[0] == 200
        assert [daemon.call('try', _user('u'))[1]['allowed'] for _ in range(3)] == [True, True, False]


def next_daemon_that_cannot_start_does_not_disturb_the_old_one():
    with Daemon(words=HANDOVER) as daemon:
        place = f'{daemon.folder}/handover'
        kept = daemon.tcp()
        assert daemon.ask('GET', '/check', connection=kept)[0] == 204
        with open(f'{daemon.folder}/bad.yaml', 'w', encoding='ascii') as file:
            file.write('rules: 7\n')
        run = weir('serve', '--config', f'{daemon.folder}/bad.yaml', '--handover', place)
        assert run.returncode == 2, run
        # a client that requests the handover, receives it and dies
        stranger = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        stranger.connect(place)
        while stranger.recv(1000)[:1] != b'R':
            pass
        stranger.send(b'G')
        stranger.recv(1000)
        stranger.close()
        daemon.wait_for('continues to run')
        assert daemon.ask('GET', '/check', connection=kept)[0] == 204
        assert stat.S_IMODE(os.stat(place).st_mode) == 0o600


# ---- many clients ----

def many_slow_clients_do_not_block_others():  # J6
    with Daemon(words=['--head-timeout', '5s']) as daemon:
        crowd = []
        try:
            for n in range(10000):
                peer = socket.socket()
                peer.connect(('127.0.0.1', daemon.port))
                peer.sendall(b'GET /check HTTP/1.1\r\nHost: localhost\r\nX-Slow: ' if n % 2 else b'')
                crowd.append(peer)
                if n % 1000 == 0:
                    assert daemon.ask('GET', '/check', connection=daemon.unix())[0] in (204, 403)
                    assert daemon.check()[0] in (204, 403)
            resident = int(open(f'/proc/{daemon.process.pid}/statm', encoding='ascii').read().split()[1]) * 4096
            assert resident < 400 << 20
            # too late: the second client had sent no request
            assert crowd[-1].recv(12) == b'HTTP/1.1 408' and crowd[-2].recv(12) == b''
            # the same happens to all of them in time
            _wait_until(lambda: len(os.listdir(f'/proc/{daemon.process.pid}/fd')) < 100)
        finally:
            for peer in crowd:
                peer.close()
        assert daemon.ask('GET', '/check', connection=daemon.unix())[0] in (204, 403)


if __name__ == '__main__':
    cases.main()
