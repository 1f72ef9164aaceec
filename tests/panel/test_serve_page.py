#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The dashboard of a daemon under load, in a headless Chromium: compared with /metrics and the
responses.

usage: test_serve_page.py WEIR
"""
import contextlib
import json
import re
import socket

import sample
import show
from daemon import TOKEN, Daemon

RULES = '''rules:
  - {name: api, match: {path: "/api/*"}, key: "header:x-key", limit: 5/h}
  - {name: search, match: {path: "/search"}, key: "header:x-key", limit: 2/h, shadow: true}
admission: {trusted: ["127.0.0.0/8"]}
'''
WORDS = ['--token-file', '{folder}/token', '--dashboard']
WATCH = 'window.hacked = 0'


@show.once
def _daemon():
    return Daemon(RULES, [*WORDS, '127.0.0.1:0'])


@contextlib.contextmanager
def _page(at='', daemon=None):
    with show.page((daemon or _daemon()).dashboard() + at, before=WATCH) as page:
        yield page
        assert page.run('window.hacked') == 0 and page.complaints() == [], page.complaints()


def _tried(daemon, path, key, times=1):
    """Sends `times` checks and returns {status: how often it was the response}."""
    counts, connection = {}, daemon.tcp()
    for _ in range(times):
        fields = {'X-Original-URI': path, 'X-Original-Method': 'GET', 'X-Original-Host': 'a.example', 'X-Key': key}
        status = daemon.ask('GET', '/check', fields=fields, connection=connection)[0]
        counts[status] = counts.get(status, 0) + 1
    connection.close()
    return counts


def _decisions(daemon, rule):
    """Returns the decisions of the rule by verdict, as /metrics shows them."""
    text = daemon.ask('GET', '/metrics')[2]
    return {match[0]: int(match[1]) for match in
            re.findall(rf'^weir_serve_rule_decisions_total\{{rule="{rule}",verdict="(\w+)"\}} (\d+)$', text, re.M)}


def _card(name):
    return f'[...document.querySelectorAll(".rule")].find(each => each.querySelector("h2 bdi").textContent === {json.dumps(name)})'


def _count(name, number):
    return f'Number({_card(name)}.querySelectorAll(".keys b")[{number}].textContent.replace(/\\D/g, ""))'


def rule_figures_under_load_agree_with_responses_and_metrics():
    with _page('#/rules') as page:
        page.wait('document.querySelectorAll(".rule").length === 2')
        for number in range(4):
            assert _tried(_daemon(), '/api/x', f'key-{number}', 50) == {204: 5, 403: 45}
        assert _tried(_daemon(), '/search', 'somebody', 6) == {204: 6}
        page.wait(f'{_count("api", 0)} === 20 && {_count("api", 1)} === 180')
        page.wait(f'{_count("search", 0)} === 2 && {_count("search", 2)} === 4')
        told = _decisions(_daemon(), 'api')
        assert (told['granted'], told['limited']) == (20, 180), told
    with _page() as page:
        page.wait('document.querySelector(".tile small").textContent.replace(/\\D/g, "") === "206"')


# characters that header values and rule names may have
HOSTILE = [each for each in sample.HOSTILE if each.isascii() and each.isprintable()]


def hostile_keys_are_shown_literally_and_can_be_reset():  # B15, J11
    with Daemon(RULES, [*WORDS, '127.0.0.1:0']) as daemon:
        for key in HOSTILE:
            assert _tried(daemon, '/api/x', key, 8) == {204: 5, 403: 3}
        with _page('#/rules', daemon) as page:
            show.unlock(page, TOKEN)
            rows = f'[...{_card("api")}.querySelectorAll("tbody tr")]'
            page.wait(f'(shown => {json.dumps(HOSTILE)}.every(each => shown.includes(each)))({rows}.map(each => each.querySelector("bdi").textContent))')
            page.run(f'{rows}.find(each => each.textContent.includes("<img src=x")).querySelector("button").click()')
            page.wait('document.querySelector("#toasts").textContent.includes("is reset")')
        assert _tried(daemon, '/api/x', HOSTILE[0]) == {204: 1}


def hostile_rule_names_are_shown_literally():  # B15, J11
    rules = 'rules:\n' + ''.join(f'  - {{name: {json.dumps(name)}, match: {{path: /{n}}}, key: ip, limit: 5/h}}\n' for n, name in enumerate(HOSTILE))
    with Daemon(rules, [*WORDS, '127.0.0.1:0']) as daemon:
        for at in ('', '#/rules'):
            with _page(at, daemon) as page:
                page.wait(f'{json.dumps(HOSTILE)}.every(each => document.querySelector("main").textContent.includes(each))')
                assert page.run('document.querySelectorAll("main img, main script, main svg[onload], iframe").length') == 0


def concurrency_rule_shows_permits_that_return_on_release():
    with Daemon('rules:\n  - {name: flight, match: {path: /up}, key: "header:x-key", limit: concurrent=1}\nadmission: {trusted: ["127.0.0.0/8"]}\n',
                [*WORDS, '127.0.0.1:0']) as daemon:
        assert _tried(daemon, '/up', 'k', 2) == {204: 1, 403: 1}
        with _page('#/rules', daemon) as page:
            page.wait('/^k\\s+1\\s+0\\/1\\s+on release/.test(document.querySelector(".rule tbody tr").innerText)')
            assert page.run('document.querySelector(".rule .about").textContent') == '/up · by header:x-key · concurrent=1'


def shared_rule_is_marked_and_its_lost_store_is_shown():
    rules = ('rules:\n  - {name: both, match: {path: "/both"}, key: "header:x-key", limit: 5/h, share: {overshoot: 0%, on_outage: open}}\n'
             'admission: {trusted: ["127.0.0.0/8"], store: {url: "unix:/nowhere/s", nodes: 2}}\n')
    with Daemon(rules, [*WORDS, '127.0.0.1:0']) as daemon:
        assert _tried(daemon, '/both', 'k', 7) == {204: 7}
        with _page('#/rules', daemon) as page:
            page.wait('document.querySelector(".rule .badge").textContent === "shared"')
            page.wait('document.querySelector(".note").textContent.includes("store of shared limits cannot be reached")')
            page.wait('/7 decided without the store . 7 not charged yet/.test(document.querySelector(".rule p.small").textContent)')


def dashboard_reloads_rules_and_reports_an_invalid_file():
    with _page('#/rules') as page:
        page.run(f'sessionStorage.setItem("weir-token", {json.dumps(TOKEN)})')
        page.call('Page.reload')
        page.wait('document.body.classList.contains("trusted")')
        _daemon().write(RULES.replace('5/h', '<b>many</b>'))
        page.click('.tools button')
        page.wait('document.querySelector(".toast.bad").textContent.includes("many")')
        assert page.run('document.querySelectorAll(".toast b").length') == 0
        _daemon().write(RULES.replace('name: search', 'name: find'))
        page.click('.tools button')
        page.wait(f'!!({_card("find")})')


def daemon_refuses_commands_without_the_token():
    port = int(re.search(r':(\d+)/', _daemon().dashboard())[1])
    assert show.ask(port, 'POST', '/panel/command', '{"ask":"reload"}', Content_Type='application/json').status == 401


def dashboard_continues_with_the_next_daemon_after_a_handover():
    with socket.create_server(('127.0.0.1', 0)) as probe:
        place = f'127.0.0.1:{probe.getsockname()[1]}'
    with Daemon(RULES, [*WORDS, place, '--handover', '{folder}/handover']) as daemon:
        with show.page(daemon.dashboard() + '#/rules', before=WATCH) as page:
            show.unlock(page, TOKEN)
            page.run('window.stayed = 1')
            for generation in range(2):
                assert _tried(daemon, '/api/x', f'key-{generation}', 6) == {204: 5, 403: 1}
                page.wait(f'{_count("api", 0)} === 5 && {_count("api", 1)} === {1 + 3 * generation}')
                daemon.start_after()
                daemon.dashboard()
                # the new daemon knows the used permits
                assert _tried(daemon, '/api/x', f'key-{generation}', 3) == {403: 3}
                page.wait(f'{_count("api", 0)} === 0 && {_count("api", 1)} === 3')  # and its counters start at 0
                told = _decisions(daemon, 'api')
                assert (told['granted'], told['limited']) == (0, 3), told
                page.wait('document.querySelector("#link").dataset.state === "live" && !document.body.classList.contains("stale")')
                daemon.admin('reset', json.dumps({'rule': 'api', 'key': f'key-{generation}'}))
            page.click('.tools button')  # commands go to the new daemon and need no other token
            daemon.wait_for('weir serve: reloaded')
            assert page.run('window.stayed') == 1 and page.run('window.hacked') == 0


if __name__ == '__main__':
    show.main()
