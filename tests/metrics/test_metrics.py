#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The metrics of weir crawl --listen and weir serve, checked with promtool and a real Prometheus.
Arguments: the program, and the folder of examples."""
import contextlib
import http.server
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
sys.path[:0] = [os.path.join(HERE, '..', 'cli'), os.path.join(HERE, '..', 'net', 'client'), os.path.join(HERE, '..', 'serve')]

import cases  # noqa: E402
from daemon import Daemon  # noqa: E402
from nginx import Nginx, free_port  # noqa: E402
from prometheus import Prometheus, fetch  # noqa: E402

PAGES = {f'{n}.html': ''.join(f'<a href="/{m}.html">x</a>' for m in (2 * n + 1, 2 * n + 2)) for n in range(400)}
HTTP = 'limit_req_zone $host zone=z:1m rate=20r/s;'
SERVER = 'limit_req_status 429; limit_req zone=z burst=3 nodelay;'
HOSTS = 12


def _rules():
    return os.path.join(sys.argv[2], 'prometheus', 'weir.rules.yml')


@contextlib.contextmanager
def _crawl(nginx, *words):
    """Yields the port of a crawl that runs until the block ends."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        crawl = subprocess.Popen(
            [os.path.abspath(sys.argv[1]), 'crawl', '--allow-private', '--quiet', '--listen', f'127.0.0.1:{port}', *words,
             *[f'http://127.0.0.{n}:{nginx.port}/0.html' for n in range(1, HOSTS + 1)]],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            Prometheus.until(lambda: fetch(f'http://127.0.0.1:{port}/healthz'))
            yield port
        finally:
            crawl.terminate()
            crawl.wait(60)
        assert crawl.returncode == 3, crawl.returncode  # 3: stopped, and can be resumed


def _web(**more):
    return Nginx(SERVER, HTTP, PAGES, everywhere=True, **more)


def _text(port):
    status, fields, text = fetch(f'http://127.0.0.1:{port}/metrics')
    assert status == 200 and fields['Content-Type'] == 'text/plain; version=0.0.4; charset=utf-8', fields
    return text


SERVED = '''
rules:
  - {name: watch, key: ip, limit: 1/h, shadow: true}
  - {name: api, match: {path: /api/**}, key: "header:x-key", limit: 3/h}
  - {name: site, key: ip, limit: 1000/s}
admission:
  trusted: [127.0.0.0/8]
'''


def _daemon_text():
    """Returns the metrics of a daemon that has a shared rule whose store does not exist."""
    shared = SERVED + '  store: {url: "unix:/nowhere/s", nodes: 2}\n'
    shared = shared.replace('rules:\n', 'rules:\n  - {name: shared, match: {path: /shared}, key: ip, limit: 5/s, share: {overshoot: 0%}}\n')
    with Daemon(shared) as daemon:
        return _text(daemon.port)


def _promtool(*words, text=None):
    run = subprocess.run(['promtool', *words], input=text, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout + run.stderr


def _families(text):
    """Returns the names that a query may use, including the parts of histograms."""
    names = set()
    for name, kind in re.findall(r'^# TYPE (\S+) (\S+)$', text, re.M):
        names |= {name + part for part in ('_bucket', '_sum', '_count')} if kind == 'histogram' else {name}
    return names


def promtool_reports_no_problem():
    """Checks names, units, types and help texts of all metrics, of a crawl and of a daemon."""
    with _web() as nginx, _crawl(nginx) as port:
        Prometheus.until(lambda: 'weir_crawl_host_queued_urls{' in _text(port))
        assert _promtool('check', 'metrics', text=_text(port)) == ''
    assert _promtool('check', 'metrics', text=_daemon_text()) == ''


def prometheus_figures_of_a_crawl_agree_with_the_server_log():
    """S0-77, S0-98, S0-102, S1-28: no alert fires, because the crawl keeps every limit."""
    with _web() as nginx, _crawl(nginx, '--pace', 'strict', '--interval', '100ms') as port:
        with Prometheus(free_port(), [f'127.0.0.1:{port}'], _rules()) as prometheus:
            prometheus.until(lambda: prometheus.sum('weir_crawl_requests_total') > 200)
            before = len(nginx.log())
            sent = prometheus.until(lambda: (prometheus.sum('weir_crawl_requests_total') >= before
                                             and prometheus.sum('weir_crawl_requests_total')))
            assert before <= sent <= len(nginx.log()) + HOSTS, (before, sent)
            assert prometheus.sum('up') == 1 and prometheus.targets()[0]['lastError'] == ''
            assert prometheus.sum('weir_crawl_hosts') == HOSTS
            assert prometheus.sum('weir_crawl_hasty_starts_total') == 0
            assert prometheus.sum('weir_crawl_wait_seconds_count{reason="pace"}') > 0
            assert len(prometheus.query('weir_crawl_host_queued_urls')) == 11  # ten hosts, and "other"
            assert not prometheus.alerts(), prometheus.alerts()


def prometheus_figures_of_a_daemon_agree_with_its_responses():
    """A failed reload is reported, with an alert. Keys of callers are in no label (V10)."""
    with Daemon(SERVED) as daemon:
        place = f'127.0.0.1:{daemon.port}'
        with Prometheus(free_port(), [place], _rules()) as prometheus:
            prometheus.until(lambda: prometheus.query('weir_serve_rules'))
            for key in ('secret-1', 'secret-2'):
                statuses = [daemon.check(X_Forwarded_Uri='/api/x', X_Key=key)[0] for _ in range(10)]
                assert statuses == 3 * [204] + 7 * [403], statuses
            assert daemon.check(X_Forwarded_Uri='/')[0] == 204
            prometheus.until(lambda: prometheus.sum('weir_serve_requests_total') == 21)
            assert prometheus.sum('weir_serve_requests_total{verdict="limited"}') == 14
            assert prometheus.sum('weir_serve_rule_decisions_total{rule="api",verdict="granted"}') == 6
            assert prometheus.sum('weir_serve_rule_keys{rule="api"}') == 2
            assert prometheus.sum('weir_serve_shadowed_total') >= 5
            assert prometheus.sum('weir_serve_health{status="ok"}') == 1
            assert prometheus.sum('weir_http_answers_total{class="4xx"}') == 14
            assert not prometheus.alerts(), prometheus.alerts()
            daemon.write(SERVED.replace('key: ip', 'key: nobody'))
            daemon.process.send_signal(signal.SIGHUP)
            prometheus.until(lambda: ('WeirReloadFailed', place) in prometheus.alerts())
            assert prometheus.sum('weir_serve_health{status="degraded"}') == 1
        assert 'secret' not in _text(daemon.port)


class _Echo(http.server.BaseHTTPRequestHandler):
    text = ''

    def do_GET(self):
        self.send_response(200)
        self.send_header('Content-Type', 'text/plain; version=0.0.4; charset=utf-8')
        self.end_headers()
        self.wfile.write(self.text.encode())

    def log_message(self, *_):
        pass


def alert_fires_when_a_host_gets_requests_faster_than_its_limit():
    """S1-29. A crawl cannot be made to do that, so its metrics are changed in one place on their
    way to Prometheus."""
    with _web() as nginx, _crawl(nginx) as port:
        Prometheus.until(lambda: 'weir_crawl_host_hasty_starts{' in _text(port))
        text = _text(port)
    liar = http.server.ThreadingHTTPServer(('127.0.0.1', 0), _Echo)
    threading.Thread(target=liar.serve_forever, daemon=True).start()
    place = f'127.0.0.1:{liar.server_port}'
    _Echo.text = text
    with Prometheus(free_port(), [place], _rules()) as prometheus:
        prometheus.until(lambda: prometheus.query('weir_crawl_hasty_starts_total'))
        time.sleep(2)
        assert not prometheus.alerts(), prometheus.alerts()
        _Echo.text = text.replace('\nweir_crawl_hasty_starts_total 0\n', '\nweir_crawl_hasty_starts_total 1\n')
        assert _Echo.text != text
        prometheus.until(lambda: ('WeirAskedTooFast', place) in prometheus.alerts())
        assert prometheus.alerts() == {('WeirAskedTooFast', place)}
        _Echo.text = re.sub(r'^(weir_crawl_host_hasty_starts\{.*\}) 0$', r'\1 1', _Echo.text, count=1, flags=re.M)
        prometheus.until(lambda: ('WeirHostAskedTooFast', place) in prometheus.alerts())
    liar.shutdown()


def alert_rules_pass_their_unit_tests():
    assert 'SUCCESS' in _promtool('check', 'rules', _rules())
    assert 'SUCCESS' in _promtool('test', 'rules', _rules().replace('.rules.yml', '.rules.test.yml'))


def example_dashboard_and_alerts_query_existing_metrics():
    """Checks each query of the example dashboard and of the alerts."""
    with _web() as nginx, _crawl(nginx) as port:
        Prometheus.until(lambda: 'weir_crawl_host_queued_urls{' in _text(port))
        families = _families(_text(port)) | _families(_daemon_text())
    with open(os.path.join(sys.argv[2], 'grafana', 'weir.json'), encoding='utf-8') as file:
        board = json.load(file)
    queries = [target['expr'] for panel in board['panels'] for target in panel.get('targets', [])]
    queries += [each['query']['query'] for each in board['templating']['list'] if each['type'] == 'query']
    with open(_rules(), encoding='utf-8') as file:
        rules = file.read()
    queries += re.findall(r'^ +expr: (?:\|\n(?: {10}.*\n)+|.*)', rules, re.M)
    assert len(queries) > 40, len(queries)
    for query in queries:
        names = re.findall(r'\b(?:weir|process)_\w+', query)
        assert names and not set(names) - families, (query, set(names) - families)


def dashboard_counts_urls_of_a_shared_job_once():
    """Evaluates the query of the dashboard for two processes of one crawl, and two crawls of one
    process each."""
    with open(os.path.join(sys.argv[2], 'grafana', 'weir.json'), encoding='utf-8') as file:
        board = json.load(file)
    query, = (target['expr'] for panel in board['panels'] for target in panel.get('targets', [])
              if 'weir_crawl_queued_urls' in target['expr'])
    series = {'{instance="a",crawl="1"}': 100, '{instance="b",crawl="1"}': 98, '{instance="c"}': 20, '{instance="d"}': 3}
    test = {'tests': [{
        'interval': '1m',
        'input_series': [{'series': f'weir_crawl_queued_urls{labels}', 'values': str(value)} for labels, value in series.items()],
        'promql_expr_test': [{'expr': query.replace('$instance', '.*'), 'eval_time': '0m',
                              'exp_samples': [{'labels': '{}', 'value': 123}]}],
    }]}
    with tempfile.NamedTemporaryFile('w', suffix='.yml') as file:
        json.dump(test, file)
        file.flush()
        assert 'SUCCESS' in _promtool('test', 'rules', file.name)


def health_and_metrics_are_served_only_under_known_host_names():
    """U14, J10."""
    with _web() as nginx, _crawl(nginx, '--listen-name', 'crawler.example') as port:
        url = f'http://127.0.0.1:{port}'
        status, _, text = fetch(f'{url}/healthz')
        assert status == 200 and json.loads(text)['status'] == 'ok' and json.loads(text)['store'] == 'ok', text
        for host, expected in (('localhost', 200), ('crawler.example:80', 200), ('evil.example', 403), ('127.0.0.1.evil.example', 403)):
            for path in ('/metrics', '/healthz'):
                assert fetch(url + path, headers={'Host': host})[0] == expected, (host, path)
        assert fetch(f'{url}/metrics', data=b'{}', headers={'Content-Type': 'application/json'})[0] == 405
        assert fetch(f'{url}/metrics', method='HEAD')[2] == ''
        assert fetch(f'{url}/nothing')[0] == 404


def crawl_refuses_requests_of_foreign_origins():  # M9
    with _web() as nginx, _crawl(nginx) as port:
        foreign = ({'Host': 'evil.example'}, {'Origin': 'http://evil.example'}, {'Origin': 'null'}, {'Sec-Fetch-Site': 'cross-site'},
                   {'Sec-Fetch-Site': 'same-site'})
        for path in ('/metrics', '/healthz', '/', '/app.js', '/panel/stream?view=overview', '/panel/command', '/nothing'):
            for fields in foreign:
                assert fetch(f'http://127.0.0.1:{port}{path}', headers=fields)[0] == 403, (path, fields)
        assert fetch(f'http://127.0.0.1:{port}/panel/command', data=b'{}', headers={'Content-Type': 'text/plain'})[0] == 415


def failing_hosts_make_a_crawl_unhealthy():
    """U14: the first six of twelve hosts fail. One such host makes the crawl degraded, half of them
    make it unhealthy."""
    broken = 'if ($host ~ "^127.0.0.[1-6]$") { return 500; }'
    with Nginx(f'location / {{ {broken} }}', '', PAGES, everywhere=True) as nginx:
        with _crawl(nginx, '--pace', 'adaptive', '--max-rate', '20', '--failure-threshold', '0', '--ignore-robots',
                    '--attempts', '50') as port:
            def state():
                status, _, text = fetch(f'http://127.0.0.1:{port}/healthz')
                found = json.loads(text)
                assert (status == 503) == (found['status'] == 'unhealthy'), (status, text)
                return found
            Prometheus.until(lambda: state()['breakers_open'] >= 6 and state()['status'] == 'unhealthy')
            assert state()['hosts'] == HOSTS


def crawl_reports_a_busy_listen_address_and_continues():
    with Nginx('', '', {'0.html': 'x'}, everywhere=True) as nginx, tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([os.path.abspath(sys.argv[1]), 'crawl', '--allow-private', '--quiet', '--listen',
                              f'127.0.0.1:{nginx.port}', f'http://127.0.0.2:{nginx.port}/0.html'],
                             cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        assert run.returncode == 0 and '--listen' in run.stderr and str(nginx.port) in run.stderr, run


if __name__ == '__main__':
    cases.main()
