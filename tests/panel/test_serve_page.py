#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The dashboard of a daemon under load, in a headless Chromium: held against /metrics and what was answered.

usage: test_serve_page.py WEIR
"""
import contextlib
import functools
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', 'cli')]

import browser  # noqa: E402
import cases  # noqa: E402

TOKEN = 'a-token-of-the-test'
HOSTILE = '"><img src=x onerror="window.hacked=1">'
RULES = '''rules:
  - {name: api, match: {path: "/api/*"}, key: "header:x-key", limit: 5/h}
  - {name: search, match: {path: "/search"}, key: "header:x-key", limit: 2/h, shadow: true}
admission: {trusted: ["127.0.0.0/8"]}
'''


class _Daemon:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix='weir-serve-')
        self.write(RULES)
        with open(f'{self.folder.name}/token', 'w', encoding='ascii') as file:
            file.write(TOKEN + '\n')
        os.chmod(f'{self.folder.name}/token', 0o600)
        self.process = subprocess.Popen(
            [os.path.abspath(sys.argv[1]), 'serve', '--config', f'{self.folder.name}/weir.yaml', '--listen', '127.0.0.1:0', '--dashboard',
             '127.0.0.1:0', '--token-file', f'{self.folder.name}/token'], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.port = self._port('listens')
        self.page_port = self._port('dashboard')
        self.url = f'http://127.0.0.1:{self.page_port}/'
        self.statuses = {'/api/x': {}, '/search': {}}
        threading.Thread(target=lambda: list(self.process.stderr), daemon=True).start()

    def write(self, text):
        with open(f'{self.folder.name}/weir.yaml', 'w', encoding='utf-8') as file:
            file.write(text)

    def _port(self, word):
        for line in self.process.stderr:
            found = re.search(rf'{word} at .*\(port (\d+)\)', line)
            if found:
                return int(found[1])
        raise AssertionError(f'it never said that it {word}')

    def try_path(self, path, key, times=1):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=20)
        for _ in range(times):
            connection.request('GET', '/check', headers={'X-Original-URI': path, 'X-Original-Method': 'GET', 'X-Key': key})
            answer = connection.getresponse()
            answer.read()
            counts = self.statuses[path]
            counts[answer.status] = counts.get(answer.status, 0) + 1
        connection.close()
        return answer.status

    def metrics(self):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=20)
        connection.request('GET', '/metrics')
        text = connection.getresponse().read().decode()
        connection.close()
        return text

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0
        self.folder.cleanup()


@functools.lru_cache(None)
def _daemon():
    return _Daemon()


@functools.lru_cache(None)
def _browser():
    return browser.Browser().__enter__()


@contextlib.contextmanager
def _page(at=''):
    page = _browser().page(before='window.hacked = 0')
    try:
        page.go(_daemon().url + at)
        page.wait('document.querySelector("#link").dataset.state === "live"')
        yield page
        assert page.run('window.hacked') == 0 and page.complaints() == [], page.complaints()
    finally:
        page.close()


def _card(name):
    return f'[...document.querySelectorAll(".rule")].find(each => each.querySelector("h2 bdi").textContent === {json.dumps(name)})'


def _count(name, number):
    return f'Number({_card(name)}.querySelectorAll(".keys b")[{number}].textContent.replace(/\\D/g, ""))'


def rules_move_under_load_and_agree_with_the_answers_and_the_metrics():
    with _page('#/rules') as page:
        page.wait('document.querySelectorAll(".rule").length === 2')
        for number in range(40):
            _daemon().try_path('/api/x', f'key-{number % 4}', 5)
        _daemon().try_path('/search', 'somebody', 6)
        counts = _daemon().statuses['/api/x']
        assert counts == {204: 20, 403: 180}, counts
        page.wait(f'{_count("api", 0)} === 20 && {_count("api", 1)} === 180')
        page.wait(f'{_count("search", 0)} === 2 && {_count("search", 2)} === 4')
        assert _daemon().statuses['/search'] == {204: 6}, _daemon().statuses
        sums = {match[0]: int(match[1]) for match in re.findall(r'rule="api"[^}]*(?:verdict|cause)="(\w+)"[^}]*\} (\d+)', _daemon().metrics())}
        assert 180 in sums.values() and 20 in sums.values(), _daemon().metrics()
    with _page() as page:
        page.wait('document.querySelector(".tile small").textContent.replace(/\\D/g, "") === "206"')


def keys_of_strangers_are_shown_as_they_are_and_reset():
    assert _daemon().try_path('/api/x', HOSTILE, 30) == 403
    with _page('#/rules') as page:
        row = f'[...{_card("api")}.querySelectorAll("tbody tr")].find(each => each.textContent.includes("<img src=x"))'
        page.wait(f'!!({row})')
        page.click('#lock')
        page.write('#token', TOKEN)
        page.press('Enter')
        page.wait('document.body.classList.contains("trusted")')
        page.wait(f'!!({row})')
        page.run(f'{row}.querySelector("button").click()')
        page.wait('document.querySelector("#toasts").textContent.includes("begins anew")')
    assert _daemon().try_path('/api/x', HOSTILE) == 204


def rules_are_reloaded_and_a_bad_file_is_told():
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
    connection = http.client.HTTPConnection('127.0.0.1', _daemon().page_port, timeout=20)
    connection.request('POST', '/panel/command', '{"ask":"reload"}', {'Content-Type': 'application/json'})
    assert connection.getresponse().status == 401
    connection.close()


if __name__ == '__main__':
    try:
        cases.main()
    finally:
        if _browser.cache_info().currsize:
            _browser().__exit__()
        if _daemon.cache_info().currsize:
            _daemon().stop()
