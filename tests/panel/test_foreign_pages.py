#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pages of other origins in a real browser try to use up the limits of a daemon that listens on the
same machine.

usage: test_foreign_pages.py WEIR
"""
import http.server
import json
import re
import socket
import threading
import time

import show
from browser import Browser
from daemon import PATIENCE_S, Daemon

# The daemon trusts clients on this machine, as it must behind a proxy that connects over TCP.
RULES = '''rules:
  - {name: all, key: global, limit: 1000000/d}
admission: {trusted: ["127.0.0.0/8", unix]}
'''
WORDS = ['--dashboard', '127.0.0.1:0', '--token-file', '{folder}/token']

# All requests that a page can send without the consent of the other side.
ATTACKS = '''
const question = '{"rule": "all", "key": "victim"}'
const get = (path, more) => fetch(target + path, {mode: "no-cors", ...more})
const post = (path, body, more) => get(path, {method: "POST", body, ...more})
const element = (name, set) => new Promise(done => {
    const made = document.createElement(name)
    made.onload = made.onerror = () => done()
    Object.assign(made, set)
    document.body.append(made)
})
const submit = (kind, n) => new Promise(done => {
    const frame = document.createElement("iframe"), form = document.createElement("form"), field = document.createElement("input")
    frame.name = "frame" + n
    document.body.append(frame, form)
    Object.assign(form, {action: target + "/v1/try", method: "POST", enctype: kind, target: frame.name})
    Object.assign(field, {name: '{"rule": "all", "key": "victim', value: '"}'})
    form.append(field)
    frame.onload = () => done()
    form.submit()
})
const listen = path => new Promise(done => {
    const source = new EventSource(target + path)
    source.onopen = source.onerror = () => { source.close(); done() }
})
const attacks = [
    get("/check"), get("/check", {credentials: "include"}), get("/check?deny=429", {referrerPolicy: "no-referrer"}),
    get("/metrics"), get("/healthz"),
    post("/v1/try", question), post("/v1/try", new Blob([question])), post("/v1/try", new TextEncoder().encode(question)),
    post("/v1/batch", "[" + question + "]"), post("/v1/reserve", '{"target": "/"}'), post("/v1/acquire", '{"target": "/"}'),
    post("/v1/try", new URLSearchParams({a: 1})), post("/v1/admin/reload", ""),
    fetch(target + "/v1/try", {method: "POST", body: question, headers: {"Content-Type": "application/json"}}),
    fetch(target + "/check", {headers: {"X-Original-Method": "GET", "X-Original-URI": "/", "X-Original-Host": "a"}}),
    element("img", {src: target + "/check?img"}), element("script", {src: target + "/check?script"}),
    element("iframe", {src: target + "/check?iframe"}), element("link", {rel: "stylesheet", href: target + "/check?style"}),
    element("link", {rel: "preload", as: "image", href: target + "/check?preload"}),
    listen("/check"), submit("text/plain", 1), submit("application/x-www-form-urlencoded", 2), submit("multipart/form-data", 3),
    (async () => navigator.sendBeacon(target + "/v1/try", question))(),
]
Promise.allSettled(attacks).then(all => { window.done = all.length })
'''
# Requests of a page whose host name was rebound to the daemon: for the browser both have the same
# origin.
REBOUND = '''
const json = {"Content-Type": "application/json"}
const attacks = [
    fetch("/check"), fetch("/check", {headers: {"X-Original-Method": "GET", "X-Original-URI": "/", "X-Original-Host": "a", "X-Forwarded-For": "192.0.2.1"}}),
    fetch("/v1/try", {method: "POST", body: '{"rule": "all", "key": "victim"}', headers: json}),
    fetch("/v1/reserve", {method: "POST", body: '{"target": "/"}', headers: json}),
    fetch("/metrics"), fetch("/healthz"), fetch("/panel/stream?view=rules"),
]
Promise.all(attacks.map(async each => (await each).status)).then(all => { window.done = all })
'''


ATTACKS_COUNT = 25


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header('Content-Type', 'text/html')
        self.end_headers()
        if self.path == '/':
            self.wfile.write(f'<!doctype html><body><script>const target = {json.dumps(self.server.target)}\n'
                             f'{self.server.script}</script>'.encode())

    def log_message(self, *_):
        pass


class _Site:
    """A web server of another origin."""

    def __init__(self, target, script=ATTACKS):
        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), _Page)
        self.server.target, self.server.script = target, script
        self.port = self.server.server_port

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def _pour(one, other):
    try:
        while text := one.recv(65536):
            other.sendall(text)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        pass


class _Switch:
    """Simulates DNS rebinding for a browser: one address that leads to the site first and to the
    daemon later. It has the port of the daemon, at another address of this machine."""

    def __init__(self, port, site):
        self.daemon_port, self.leads_to = port, site.port
        self.listener = socket.create_server(('127.0.0.2', port), backlog=64)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._join, args=(peer,), daemon=True).start()

    def _join(self, peer):
        first = peer.recv(65536)  # browsers connect before they send a request
        if not first:
            return
        there = socket.create_connection(('127.0.0.1', self.leads_to))
        there.sendall(first)
        threading.Thread(target=_pour, args=(there, peer), daemon=True).start()
        _pour(peer, there)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


@show.once
def _browser():
    """Returns the browser of all tests; it resolves foreign host names to this machine."""
    return Browser(['--host-resolver-rules=MAP evil.example 127.0.0.1, MAP rebound.example 127.0.0.2'])


def _numbers(daemon):
    """Returns (decisions, requests) so far; these metrics requests are not decisions."""
    time.sleep(0.3)  # /metrics is rewritten four times per second
    text = daemon.ask('GET', '/metrics', connection=daemon.unix())[2]
    decisions = sum(int(n) for n in re.findall(r'^weir_serve_requests_total\{\S+\} (\d+)$', text, re.M))
    return decisions, int(re.search(r'^weir_http_requests_total (\d+)$', text, re.M).group(1))


def requests_of_foreign_pages_use_up_no_limit():  # M9
    with Daemon(RULES, WORDS) as daemon, _Site(f'http://127.0.0.1:{daemon.port}') as site:
        for name in ('127.0.0.1', 'evil.example'):  # a page of the same site, and one of another
            before = _numbers(daemon)
            page = _browser().page()
            page.go(f'http://{name}:{site.port}/')
            end, after = time.monotonic() + PATIENCE_S, before
            while after[1] - before[1] < ATTACKS_COUNT and time.monotonic() < end:  # until all requests have arrived
                after = _numbers(daemon)
            page.close()
            assert after[0] == before[0], (name, after[0] - before[0], 'decisions')
            assert after[1] - before[1] >= ATTACKS_COUNT, (name, before, after)


def navigation_from_a_foreign_page_uses_up_no_limit():  # M9
    with Daemon(RULES, WORDS) as daemon, _Site('', 'window.done = 1') as site:
        for path in ('/check', '/check?deny=429'):
            before = _numbers(daemon)
            page = _browser().page()
            page.go(f'http://127.0.0.1:{site.port}/')
            page.wait('window.done')
            page.run(f'location = "http://127.0.0.1:{daemon.port}{path}"')
            while _numbers(daemon)[1] < before[1] + 2:  # the navigation, and the request for /metrics
                time.sleep(0.1)
            assert _numbers(daemon)[0] == before[0], path
            page.close()


def dns_rebinding_to_the_daemon_is_refused():  # M9, DNS rebinding
    with Daemon(RULES, WORDS) as daemon:
        board = int(re.search(r':(\d+)/', daemon.dashboard()).group(1))
        for port in (daemon.port, board):
            with _Site('', REBOUND) as site, _Switch(port, site) as switch:
                before = _numbers(daemon)[0]
                page = _browser().page(before='Object.defineProperty(window, "then", {value: new Promise(go => { window.go = go })})')
                site.server.script = f'window.then.then(() => {{ {REBOUND} }}); window.ready = 1'
                page.go(f'http://rebound.example:{port}/')
                page.wait('window.ready')
                switch.leads_to = port
                page.run('window.go()')
                statuses = page.wait('window.done')
                assert set(statuses) == {403}, (port, statuses)
                assert _numbers(daemon)[0] == before, port
                page.close()


def link_on_a_foreign_page_opens_the_dashboard():
    with Daemon(RULES, WORDS) as daemon, _Site('', 'window.done = 1') as site:
        board = daemon.dashboard()
        page = _browser().page()
        page.go(f'http://127.0.0.1:{site.port}/')
        page.wait('window.done')
        page.run(f'location = {json.dumps(board)}')
        page.wait('location.href.startsWith(' + json.dumps(board) + ') && document.querySelectorAll("main .tile").length > 0')


if __name__ == '__main__':
    show.main()
