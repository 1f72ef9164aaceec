#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The dashboard of a crawl of the demo web, in a headless Chromium: compared with `weir hosts`,
`weir jobs` and the requests that the hosts received.

usage: test_crawl_page.py WEIR WEB RUN    RUN is demo/run
"""
import contextlib
import html
import http.server
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time

import sample
import show


def _load(path):
    loader = importlib.machinery.SourceFileLoader('demo_run', path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader('demo_run', loader))
    loader.exec_module(module)
    return module


class Crawl:
    """A crawl of the whole demo web with a dashboard; it runs until the `with` block ends."""

    def __init__(self, weir, web, run, *more):
        self.weir, self.more = weir, more
        self.demo = _load(run)
        self.folder = tempfile.mkdtemp(prefix='weir-page-')
        self.web = self.demo.Web(web, self.folder, [])

    def __enter__(self):
        self.web.__enter__()
        with open(f'{self.folder}/truths.json', encoding='utf-8') as file:
            self.hosts = {each['name']: each['host'] for each in json.load(file)}
        self.start()
        return self

    def start(self, port=0, *more):
        self.process = subprocess.Popen(
            [self.weir, 'crawl', *self.demo.OPTIONS, '--seeds-file', f'{self.folder}/seeds', '--state', f'{self.folder}/state.db', '--out',
             f'{self.folder}/crawl.jsonl', '--listen', f'127.0.0.1:{port}', '--token-file', f'{self.folder}/token', *self.more, *more],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
        for line in self.process.stderr:
            found = re.search(r'http://127\.0\.0\.1:(\d+)/(\S*)', line)
            if found:
                assert found[2] == '', 'the token is in a log'
                self.port = int(found[1])
                break
        else:
            raise AssertionError('it says nothing of a dashboard')
        self.url = f'http://127.0.0.1:{self.port}/'
        with open(f'{self.folder}/token', encoding='ascii') as file:
            self.token = file.read().strip()

    def again(self):
        """Starts a new crawl at the same address, without the old state and output."""
        self.process.stderr.close()
        for name in os.listdir(self.folder):
            if name.startswith(('state.db', 'crawl.jsonl')):
                os.unlink(f'{self.folder}/{name}')
        self.start(self.port)

    def stop(self):
        """Interrupts the crawl; it must end even while dashboards are connected."""
        for _ in range(2):
            self.process.send_signal(signal.SIGINT)
            time.sleep(0.3)
        self.process.stderr.close()
        assert self.process.wait(show.PATIENCE_S) in (0, 1, 3), self.process.returncode

    def told(self, *words):
        run = subprocess.run([self.weir, *words, '--json', '--state', f'{self.folder}/state.db'], capture_output=True, text=True, timeout=60,
                             stdin=subprocess.DEVNULL)
        assert run.returncode == 0, run
        return json.loads(run.stdout)

    def log(self, name):
        """Returns the times of the requests to a host, in seconds of the monotonic clock."""
        with open(f'{self.folder}/log.jsonl', encoding='utf-8') as file:
            lines = [json.loads(line) for line in file.read().rpartition('\n')[0].splitlines()]
        return [each['at'] / 1e9 for each in lines if each['host'] == name]

    def ask(self, method, path, body=None, **fields):
        answer = show.ask(self.port, method, path, body, **fields)
        return answer.status, answer.text

    def command(self, **request):
        return self.ask('POST', '/panel/command', json.dumps(request), Content_Type='application/json', Authorization=f'Bearer {self.token}')

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()
        self.web.process.terminate()
        self.web.process.wait()
        self.web.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class _Liar(http.server.BaseHTTPRequestHandler):
    """A server with an endless number of pages, whose links and robots.txt contain hostile names.
    """

    def do_GET(self):
        port = self.server.server_port
        links = [f'/page-{time.monotonic_ns()}', *(f'http://{name}/' for name in sample.HOSTILE), *(f'/{name}' for name in sample.HOSTILE),
                 *(f'http://{name}@127.0.0.2:{port}/' for name in sample.HOSTILE), *(f'http://127.0.0.3:{port}/{name}' for name in sample.HOSTILE)]
        text = ''.join(f'<a href="{html.escape(link)}">{html.escape(link)}</a>' for link in links)
        if self.path == '/robots.txt':
            text = 'User-agent: *\nCrawl-delay: 0.2\n' + ''.join(f'Disallow: /x{name}\nAllow: /{name}\n' for name in sample.HOSTILE)
        self.send_response(200, sample.HOSTILE[0])
        self.send_header('Content-Type', 'text/plain' if self.path == '/robots.txt' else 'text/html; charset=utf-8')
        self.send_header('Server', sample.HOSTILE[1])
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


def hostile_host_names_are_harmless_on_the_dashboard_and_in_metrics():  # B15, J11, J12
    liar = http.server.ThreadingHTTPServer(('0.0.0.0', 0), _Liar)
    threading.Thread(target=liar.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [os.path.abspath(sys.argv[1]), 'crawl', '--allow-private', '--scope', 'any', '--include', f':{liar.server_port}/', '--listen', '127.0.0.1:0',
             f'http://127.0.0.1:{liar.server_port}/'], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        port = next(int(found[1]) for found in (re.search(r'http://127\.0\.0\.1:(\d+)/', line) for line in process.stderr) if found)
        said = []
        threading.Thread(target=lambda: said.extend(process.stderr), daemon=True).start()
        try:
            for at in ('', '#/hosts', f'#/host/127.0.0.3:{liar.server_port}', '#/jobs'):
                with show.page(f'http://127.0.0.1:{port}/{at}', before='window.hacked = 0') as page:
                    page.wait('/127.0.0.3|running/.test(document.querySelector("main").textContent)')
                    time.sleep(1.2)  # wait for another round of events
                    assert page.run('window.hacked') == 0 and page.complaints() == [], (page.complaints(), process.poll(), said[-5:])
                    assert page.run('document.querySelectorAll("main img, main script, main iframe, main [onload]").length') == 0
            text = show.ask(port, 'GET', '/metrics').text.decode()
            line = re.compile(r'# .*|[a-z0-9_]+(\{([a-z_]+="([^"\\\n]|\\[\\"n])*",?)*\})? [-+0-9.eInfNa]+')
            odd = [each for each in text.splitlines() if not line.fullmatch(each)]
            assert odd == [], odd
            hosts = set(re.findall(r'host="([^"]*)"', text))
            assert {f'127.0.0.{n}:{liar.server_port}' for n in (1, 2, 3)} <= hosts, hosts
            assert all(re.fullmatch(r'[a-z0-9.:\[\]-]+', each) for each in hosts), hosts
        finally:
            process.terminate()
            process.wait(60)
            liar.shutdown()


@show.once
def _first_crawl():
    # slow enough to outlast a test on a busy machine
    return Crawl(*map(os.path.abspath, sys.argv[1:4]), '--max-rate', '1')


def _crawl():
    crawl = _first_crawl()
    if crawl.process.poll() is not None:  # it has fetched all pages
        crawl.again()
    return crawl


@contextlib.contextmanager
def _page(at=''):
    with show.page(_crawl().url + at) as page:
        yield page
        assert page.complaints() == [], page.complaints()


def _number(text):
    return int(re.sub('[^0-9]', '', text.split(' ')[0]))


IN_ALL = 'document.querySelector(".tile small").textContent'


def dashboard_figures_change_and_agree_with_weir_hosts():
    with _page() as page:
        page.wait(f'{IN_ALL} !== ""')
        first = _number(page.run(IN_ALL))
        page.wait(f'Number({IN_ALL}.replace(/\\D/g, "")) > {first + 20}')
        before = _crawl().told('hosts', 'list', '--top', '100')
        shown = _number(page.wait(f'{IN_ALL}'))
        sum_before = sum(each['requests'] for each in before['hosts'])
        page.wait(f'Number({IN_ALL}.replace(/\\D/g, "")) >= {max(shown, sum_before - 1)}')
        after = sum(each['requests'] for each in _crawl().told('hosts', 'list', '--top', '100')['hosts'])
        assert shown <= after, (shown, after)


def dashboard_table_has_the_hosts_of_weir_hosts():
    with _page('#/hosts') as page:
        page.wait('document.querySelectorAll("tbody tr").length >= 10')
        shown = set(page.run('[...document.querySelectorAll("tbody bdi")].map(each => each.textContent)'))
        told = {each['host'] for each in _crawl().told('hosts', 'list', '--top', '100')['hosts']}
        assert shown == told, shown ^ told
        delay = _crawl().hosts['delay']
        row = f'[...document.querySelectorAll("tbody tr")].find(each => each.textContent.includes({json.dumps(delay)}))'
        page.wait(f'/robots_delay|concurrency|none/.test({row}.querySelector(".wait").textContent) || {row}.querySelector(".wait").textContent === ""')
        assert page.wait(f'{row}.querySelector(".pace").textContent').endswith('of 0.5/s')


def crawl_dashboard_refuses_commands_without_the_token():
    fast = json.dumps({'ask': 'pause', 'host': _crawl().hosts['slow']})
    status, text = _crawl().ask('POST', '/panel/command', fast, Content_Type='application/json')
    assert status == 401 and json.loads(text)['ok'] is False
    assert _crawl().ask('POST', '/panel/command', fast, Content_Type='application/json', Authorization='Bearer 0' * 16)[0] == 401
    states = {each['host']: each['paused'] for each in _crawl().told('hosts', 'list', '--top', '100')['hosts']}
    assert states[_crawl().hosts['slow']] is False
    assert stat.S_IMODE(os.stat(f'{_crawl().folder}/token').st_mode) == 0o600


def command_endpoint_refuses_requests_that_are_no_commands():
    for request in ({'ask': 'hosts'}, {'ask': 'tasks', 'job': 1}, {'ask': 7}, {}, {'do': 'pause'}):
        status, text = _crawl().command(**request)
        assert status == 200 and json.loads(text)['ok'] is False, (request, text)
    status, text = _crawl().ask('POST', '/panel/command', '{"ask":"pause","ask":"tasks"}', Content_Type='application/json',
                                Authorization=f'Bearer {_crawl().token}')
    assert json.loads(text)['ok'] is False, text


def dashboard_pauses_and_resumes_a_host():
    slow = _crawl().hosts['slow']
    with _page(f'#/host/{slow}') as page:
        page.wait('document.querySelector(".badge").textContent === "active"')
        page.click('.controls button')
        page.write('#token', _crawl().token)
        page.press('Enter')
        page.wait('document.querySelector(".badge").textContent === "paused"')
        # requests in flight still end
        show.until(lambda: _crawl().told('hosts', 'show', slow)['host']['in_flight'] == 0)
        before = len(_crawl().log('slow'))
        time.sleep(2)
        assert len(_crawl().log('slow')) == before
        assert _crawl().told('hosts', 'show', slow)['host']['paused'] is True
        page.wait('document.querySelector(".controls button").textContent === "Resume"')
        page.click('.controls button')
        page.wait('document.querySelector(".badge").textContent !== "paused"')
        show.until(lambda: len(_crawl().log('slow')) > before)


def dashboard_sets_and_resets_the_pace_of_a_host():
    slow = _crawl().hosts['slow']
    with _page(f'#/host/{slow}') as page:
        page.wait('!document.querySelector(".controls").hidden && !document.body.classList.contains("stale")')
        page.run(f'sessionStorage.setItem("weir-token", {json.dumps(_crawl().token)})')
        page.call('Page.reload')
        page.wait('document.body.classList.contains("trusted")')
        page.click('.controls button:nth-child(2)')
        page.write('#rate', '0.8')
        page.press('Enter')
        show.until(lambda: _crawl().told('hosts', 'show', slow)['host']['set_interval_ms'] == 1250)
        page.wait('document.querySelector(".bounds tbody").textContent.includes("set by hand")')
        page.wait('[...document.querySelectorAll(".events li")].some(each => each.textContent.includes("set to 0.80/s"))')
        page.click('.controls button:nth-child(3)')
        show.until(lambda: _crawl().told('hosts', 'show', slow)['host']['set_interval_ms'] in (0, None))
        page.click('.controls .danger')
        page.click('dialog .danger')
        page.wait('[...document.querySelectorAll(".events li")].some(each => each.textContent.includes("forgotten"))')


def host_page_has_bounds_and_history():
    delay = _crawl().hosts['delay']
    with _page(f'#/host/{delay}') as page:
        page.wait('[...document.querySelectorAll(".bounds tr")].some(each => each.textContent.includes("robots_delay") && each.textContent.includes("2.0\\u202fs"))')
        page.wait('document.querySelector(".chart path.line").getAttribute("d").includes("L")')
        page.wait('/Limit\\s*[a-z]+: /.test(document.querySelector("main").textContent)')
    with _page('#/host/nobody.example') as page:
        page.wait('document.querySelector(".note").textContent.includes("host is unknown")')


def job_page_shows_progress():
    with _page('#/jobs') as page:
        page.wait('document.querySelector(".job .badge").textContent === "running"')
        done = 'Number(document.querySelector(".job dd").textContent.replace(/\\D/g, ""))'
        first = page.wait(done)
        page.wait(f'{done} > {first}')
        job = _crawl().told('jobs', 'list')['jobs'][-1]
        assert job['done'] >= first, (job, first)
        assert 0 <= int(page.run('document.querySelector("[role=progressbar]").getAttribute("aria-valuenow")')) <= 100


def foreign_host_header_and_origin_are_refused():
    assert _crawl().ask('GET', '/', Host='evil.example')[0] == 403
    assert _crawl().ask('GET', '/panel/stream', Origin='http://evil.example')[0] == 403


def dashboard_reconnects_when_the_crawl_is_resumed():
    with _page() as page:
        page.wait(f'{IN_ALL} !== ""')
        crawl = _crawl()
        crawl.stop()
        page.wait('document.querySelector("#link").dataset.state === "lost"')
        crawl.start(crawl.port, '--resume')
        page.wait('document.querySelector("#link").dataset.state === "live"')
        page.wait('!document.body.classList.contains("stale")')
        page.browser.events.clear()  # forget the errors reported while the server was away


if __name__ == '__main__':
    show.main()
