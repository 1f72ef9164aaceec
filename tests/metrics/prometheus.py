# SPDX-License-Identifier: MIT
"""A real Prometheus on loopback, in a temporary folder."""
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

CONF = '''
global: {{scrape_interval: 500ms, evaluation_interval: 500ms}}
rule_files: ['{rules}']
scrape_configs:
  - job_name: weir
    static_configs: [{{targets: {targets}}}]
'''


def fetch(url, **more):
    """Returns the status, the header fields and the text of a response, whatever the status."""
    request = urllib.request.Request(url, **more)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


class Prometheus:
    """with Prometheus(port, ['127.0.0.1:9090'], 'weir.rules.yml') as prometheus: prometheus.query('up')"""

    def __init__(self, port, targets, rules):
        self.folder = tempfile.mkdtemp(prefix='weir-prometheus-')
        self.url = f'http://127.0.0.1:{port}'
        self.port = port
        with open(f'{self.folder}/prometheus.yml', 'w', encoding='utf-8') as file:
            file.write(CONF.format(targets=json.dumps(targets), rules=os.path.abspath(rules)))

    def __enter__(self):
        self.process = subprocess.Popen(
            ['prometheus', f'--config.file={self.folder}/prometheus.yml', f'--storage.tsdb.path={self.folder}/data',
             f'--web.listen-address=127.0.0.1:{self.port}', '--log.level=warn'],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.until(lambda: fetch(f'{self.url}/-/ready')[0] == 200)
        return self

    def __exit__(self, *why):
        self.process.terminate()
        self.process.wait(20)
        shutil.rmtree(self.folder)

    @staticmethod
    def until(is_so, seconds=60):
        """Calls `is_so` until its result is true, and returns that result."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                found = is_so()
                if found:
                    return found
            except OSError:
                pass  # it does not listen yet
            time.sleep(0.2)
        raise AssertionError('it never came to be')

    def _get(self, path):
        status, _, text = fetch(self.url + path)
        assert status == 200, text
        return json.loads(text)['data']

    def query(self, expression):
        """Returns [({label: value}, number)]."""
        found = self._get(f'/api/v1/query?query={urllib.parse.quote(expression)}')
        return [(each['metric'], float(each['value'][1])) for each in found['result']]

    def sum(self, expression):
        return sum(number for _, number in self.query(expression))

    def alerts(self):
        """Returns {(name, instance)} of the alerts that fire."""
        return {(alert['labels']['alertname'], alert['labels']['instance'])
                for alert in self._get('/api/v1/alerts')['alerts'] if alert['state'] == 'firing'}

    def targets(self):
        return self._get('/api/v1/targets')['activeTargets']
