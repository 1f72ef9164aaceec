#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Three weir serve on one real Redis: what they admit together, and what they do without it.

usage: test_serve.py WEIR
"""
import contextlib
import email.utils
import json
import os
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'serve'), os.path.join(HERE, '..', 'cli')]

import cases  # noqa: E402
from daemon import Daemon  # noqa: E402
from store import Redis, figure as figure_of  # noqa: E402

RULES = '''
rules:
  - {{name: exact, match: {{path: "/exact/**"}}, key: "header:x-user", limit: 300/h fixed_window, share: {{overshoot: 0%}}}}
  - {{name: leased, match: {{path: "/leased/**"}}, key: "header:x-user", limit: 30000/h fixed_window,
     share: {{overshoot: 1%}}}}
  - {{name: open, match: {{path: "/open/**"}}, key: "header:x-user", limit: 1000/h fixed_window,
     share: {{overshoot: 0%, on_outage: open}}}}
  - {{name: closed, match: {{path: "/closed/**"}}, key: "header:x-user", limit: 1000/h fixed_window,
     share: {{overshoot: 0%, on_outage: closed}}}}
  - {{name: part, match: {{path: "/part/**"}}, key: "header:x-user", limit: 600/s burst=30, share: {{overshoot: 0%}}}}
  - {{name: trial, match: {{path: "/trial/**"}}, key: "header:x-user", limit: 2/h fixed_window, share: {{overshoot: 0%}},
     shadow: true}}
  - {{name: flight, match: {{path: "/flight/**"}}, key: "header:x-user", limit: concurrent=3, share: {{overshoot: 1%}}}}
  - {{name: busy, match: {{path: "/busy/**"}}, key: "header:x-user", limit: 1000000/s, share: {{overshoot: 0%, on_outage: open}}}}
admission:
  trusted: [127.0.0.0/8, unix]
  store: {{url: "unix:{path}", nodes: 3, timeout: 10s}}
'''


@contextlib.contextmanager
def _three():
    """Starts a store and three daemons that are members there."""
    with Redis() as redis:
        rules = RULES.format(path=redis.path)
        words = ['--token-file', '{folder}/token']
        with Daemon(rules, words) as one, Daemon(rules, words) as two, Daemon(rules, words) as three:
            for daemon in (one, two, three):
                _wait_for_figure(daemon, 'weir_share_seated', 1)
            yield redis, [one, two, three]


def _wait_for(daemon, status):
    while json.loads(daemon.ask('GET', '/healthz')[2])['status'] != status:
        time.sleep(0.05)


def _figure(daemon, name):
    return figure_of(daemon.ask('GET', '/metrics')[2], name)


def _wait_for_figure(daemon, name, value):
    """Waits for the value: /metrics is not written anew for every reader."""
    end = time.monotonic() + 60
    while _figure(daemon, name) != value:
        assert time.monotonic() < end, (name, _figure(daemon, name), value)
        time.sleep(0.05)


def _wait_allowed(daemon, request):
    """Waits until the request is allowed: a refusal is cached for a second."""
    end = time.monotonic() + 60
    while not daemon.call('try', request)[1]['allowed']:
        assert time.monotonic() < end, request
        time.sleep(0.02)


def _ask_at_once(daemons, rule, lists, each):
    """Sends `lists` batches of `each` requests to all daemons at the same time. Returns the number
    of grants."""
    admitted = []

    def ask(daemon):
        connection = daemon.tcp()
        question = json.dumps([{'rule': rule, 'key': 'k'}] * each)
        for _ in range(lists):
            status, answers = daemon.call('batch', question, connection)
            assert status == 200, status
            admitted.append(sum(answer['allowed'] for answer in answers))
        connection.close()
    threads = [threading.Thread(target=ask, args=(daemon,)) for daemon in daemons]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(admitted) == len(daemons) * lists
    return sum(admitted)


def exact_rules_admit_exactly_the_limit_at_three_daemons():
    with _three() as (_, daemons):
        assert _ask_at_once(daemons, 'exact', 10, 20) == 300
        for daemon in daemons:
            status, fields, _ = daemon.check(x_original_uri='/exact/1', x_user='k')
            assert status == 403 and fields['x-weir-status'] == '429' and int(fields['retry-after']) > 3000, fields
        assert daemons[0].check(x_original_uri='/exact/1', x_user='other')[0] == 204


def leased_rules_stay_within_their_bound_and_seldom_ask_the_store():
    with _three() as (_, daemons):
        before = sum(_figure(daemon, 'weir_share_commands_total') for daemon in daemons)
        admitted = _ask_at_once(daemons, 'leased', 100, 120)
        time.sleep(1)  # /metrics is not written anew for every reader
        commands = sum(_figure(daemon, 'weir_share_commands_total') for daemon in daemons) - before
        assert 25000 <= admitted <= 30000 + 300, admitted
        assert commands * 20 <= 36000, commands
        assert _figure(daemons[0], 'weir_share_overshoot_bound{rule="leased"}') == 300
        assert sum(_figure(daemon, 'weir_share_overshoot{rule="leased"}') for daemon in daemons) <= 300


def each_call_of_the_api_asks_the_store():
    with _three() as (_, daemons):
        daemon = daemons[0]
        request = {'target': '/exact/1', 'headers': {'x-user': 'api'}}
        assert daemon.call('try', request)[1]['remaining'] == 299
        assert daemon.call('acquire', {**request, 'cost': 9})[1]['remaining'] == 290
        held = daemon.call('reserve', {**request, 'cost': 10})[1]
        assert held['remaining'] == 280 and 'hold' in held, held
        assert daemon.call('commit', {'hold': held['hold'], 'used': 30})[0] == 200
        # the 20 permits used beyond the reservation are charged with this request
        assert daemon.call('try', request)[1]['remaining'] == 259
        late = daemon.call('acquire', {**request, 'cost': 300, 'timeout_ms': 50})[1]
        assert not late['allowed'] and late['cause'] == 'timed_out', late
        assert not daemon.call('try', {**request, 'cost': 301})[1]['allowed']
        status, answers = daemon.call('batch', [request, {'rule': 'none', 'key': 'k'}, {'rule': 'exact', 'key': 'api'}])
        assert status == 200 and answers[0]['remaining'] == 258 and 'error' in answers[1], answers
        assert answers[2]['remaining'] == 257, answers


def three_daemons_keep_the_limit_on_requests_in_flight():
    with _three() as (_, daemons):
        holds = [daemon.check(x_original_uri='/flight/1', x_user='k')[1]['x-weir-hold'] for daemon in daemons]
        for daemon in daemons:
            status, fields, _ = daemon.check(x_original_uri='/flight/1', x_user='k')
            assert status == 403 and fields['x-weir-status'] == '429', (status, fields)
        assert daemons[0].call('release', {'hold': holds[0]})[0] == 200
        late = daemons[2].call('acquire', {'target': '/flight/1', 'headers': {'x-user': 'k'}, 'timeout_ms': 60000})[1]
        assert late['allowed'] and 'hold' in late, late
        assert not daemons[0].call('try', {'rule': 'flight', 'key': 'k'})[1]['allowed']


def cancelled_and_reset_permits_are_available_to_all_daemons():
    with _three() as (_, daemons):
        request = {'target': '/exact/1', 'headers': {'x-user': 'back'}}
        held = daemons[0].call('reserve', {**request, 'cost': 300})[1]
        assert held['allowed'] and not daemons[1].call('try', request)[1]['allowed']
        assert daemons[0].call('cancel', {'hold': held['hold']})[0] == 200
        _wait_allowed(daemons[1], {**request, 'cost': 300})
        assert not daemons[2].call('try', request)[1]['allowed']
        assert daemons[0].admin('reset', json.dumps({'rule': 'exact', 'key': 'back'})) == 200
        for daemon in daemons:
            _wait_allowed(daemon, {**request, 'cost': 100})


def _shown(daemon):
    """Returns the wall clock of a daemon."""
    return email.utils.parsedate_to_datetime(daemon.ask('GET', '/healthz')[1]['date']).timestamp()


def _another_boot():
    """Returns a command that runs a program with a monotonic clock a day ahead; [] if that is not
    permitted."""
    words = ['unshare', '--time', '--monotonic', '86400', '--boottime', '86400', '--fork', '--kill-child']
    return words if subprocess.run([*words, 'true'], capture_output=True, check=False).returncode == 0 else []


def clocks_an_hour_apart_do_not_change_the_admitted_number():
    """Only the clock of the store counts: for windows, buckets, leases, returned permits and
    outages."""
    def skewed(seconds):
        return {'LD_PRELOAD': os.environ['WEIR_TEST_SKEW'], 'WEIR_TEST_SKEW_S': str(seconds)}
    with Redis() as redis:
        rules = RULES.format(path=redis.path)
        with Daemon(rules, environment=skewed(3600)) as one, Daemon(rules, environment=skewed(-3600)) as two, \
                Daemon(rules, before=_another_boot()) as three:
            daemons = [one, two, three]
            for daemon, hours in ((one, 1), (two, -1), (three, 0)):
                assert abs(_shown(daemon) - time.time() - 3600 * hours) < 600
                _wait_for_figure(daemon, 'weir_share_seated', 1)
            assert _ask_at_once(daemons, 'exact', 10, 20) == 300
            assert _ask_at_once(daemons, 'leased', 100, 110) <= 30000 + 300
            for daemon in daemons:
                assert 3000 < int(daemon.check(x_original_uri='/exact/1', x_user='k')[1]['retry-after']) <= 3600
            request = {'target': '/exact/1', 'headers': {'x-user': 'back'}}
            held = one.call('reserve', {**request, 'cost': 300})[1]
            assert two.call('cancel', {'hold': held['hold']})[0] == 404 and one.call('cancel', {'hold': held['hold']})[0] == 200
            _wait_allowed(two, {**request, 'cost': 300})
            assert _ask_at_once(daemons, 'open', 1, 100) == 300
            redis.kill()
            for daemon in daemons:
                _wait_for_figure(daemon, 'weir_share_up', 0)
            assert _ask_at_once(daemons, 'open', 2, 100) == 600
            redis.start()
            for daemon in daemons:
                _wait_for_figure(daemon, 'weir_share_up', 1)
                _wait_for_figure(daemon, 'weir_share_owed', 0)
            assert _ask_at_once(daemons, 'open', 2, 100) == 100  # 900 of 1000 are used, which no daemon knew alone


def shadow_rules_are_asked_and_refuse_no_request():
    with _three() as (_, daemons):
        answers = [daemons[i % 3].call('try', {'target': '/trial/1', 'headers': {'x-user': 'k'}})[1] for i in range(6)]
        assert all(answer['allowed'] for answer in answers), answers
        assert sum(answer.get('shadowed', False) for answer in answers) == 4, answers


def without_the_store_each_rule_follows_its_setting_without_errors():
    with _three() as (redis, daemons):
        assert _ask_at_once(daemons, 'open', 1, 100) == 300
        redis.kill()
        for daemon in daemons:
            _wait_for(daemon, 'degraded')
            _wait_for_figure(daemon, 'weir_share_up', 0)
            daemon.wait_for('the store of shared limits cannot be reached')
        assert _ask_at_once(daemons, 'open', 2, 100) == 600
        assert _ask_at_once(daemons, 'closed', 2, 100) == 0
        begin = time.monotonic()
        admitted = _ask_at_once(daemons, 'part', 20, 100)
        assert admitted <= 600 * (time.monotonic() - begin) + 30 + 1, admitted
        for daemon in daemons:
            _wait_for_figure(daemon, 'weir_share_owed{rule="open"}', 200)
        redis.start()
        for daemon in daemons:
            _wait_for(daemon, 'ok')
            _wait_for_figure(daemon, 'weir_share_owed', 0)
        assert _ask_at_once(daemons, 'open', 2, 100) == 100  # 900 of 1000 are used, and all daemons know it


def store_killed_and_restarted_under_load_blocks_no_request():
    with _three() as (redis, daemons):
        told, is_over = [], threading.Event()

        def ask(daemon):
            connection = daemon.tcp()
            while not is_over.is_set():
                begin = time.monotonic()
                status, answer = daemon.call('try', {'rule': 'busy', 'key': 'k'}, connection)
                told.append((status == 200 and answer['allowed'], time.monotonic() - begin))
            connection.close()
        threads = [threading.Thread(target=ask, args=(daemon,)) for daemon in daemons for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(2):
            time.sleep(0.5)
            redis.kill()
            for daemon in daemons:
                _wait_for_figure(daemon, 'weir_share_up', 0)
            redis.start()
            for daemon in daemons:
                _wait_for_figure(daemon, 'weir_share_up', 1)
        is_over.set()
        for thread in threads:
            thread.join()
        assert len(told) > 100 and all(good for good, _ in told)
        # far below the timeout of 10 s: the lost connection is noticed at once
        assert max(took for _, took in told) < 5
        for daemon in daemons:
            _wait_for_figure(daemon, 'weir_share_owed', 0)
            assert _figure(daemon, 'weir_share_decisions_total{rule="busy",source="open",verdict="granted"}') > 0


def reload_keeps_shared_limits_and_refuses_another_store():
    with _three() as (redis, daemons):
        daemon = daemons[0]
        assert daemon.call('try', {'rule': 'exact', 'key': 'reload', 'cost': 299})[1]['allowed']
        daemon.write(RULES.format(path=redis.path).replace('300/h', '310/h'))
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for('reloaded')
        assert daemon.call('try', {'rule': 'exact', 'key': 'reload', 'cost': 1})[1]['remaining'] == 10
        daemon.write(RULES.format(path='/nowhere'))
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for('not reloaded.*which needs a restart')
        daemon.write(RULES.format(path=redis.path))


if __name__ == '__main__':
    cases.main()
