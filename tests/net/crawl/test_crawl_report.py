#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The report that a crawl prints at its end, and weir report afterwards. The first argument is the
program."""
import json
import os
import subprocess
import sys

from site_rig import PAGES, PATIENCE_S, Folder, Held, cases, site
from page import harmless

FAST = ('--pace', 'unlimited')


def _report(folder, *words):
    return subprocess.run([os.path.abspath(sys.argv[1]), 'report', *words], cwd=folder.name, capture_output=True, text=True,
                          timeout=PATIENCE_S, stdin=subprocess.DEVNULL)


def end_report_and_weir_report_agree():
    home = '<a href="p0.html">a</a><a href="gone">b</a><a href="/secret/x">c</a>'
    with site(**{'index.html': home, 'robots.txt': 'User-agent: *\nDisallow: /secret\n'}) as nginx, Folder() as folder:
        run = folder.crawl(*FAST, '--depth', '2', '--report', 'r.json', nginx.url)
        again = _report(folder)
        assert again.returncode == 0 and again.stderr == '', again
        first, _, rest = again.stdout.partition('\n')
        assert first.startswith('job 1, run 1, ended 20') and rest == run.stdout, (again, run)
        assert _report(folder, '--json').stdout == folder.read('r.json')


def statuses_of_the_report_agree_with_the_nginx_log():
    with site(**{'index.html': '<a href="p0.html">a</a><a href="gone">b</a>'}) as nginx, Folder() as folder:
        assert folder.crawl(*FAST, '--quiet', nginx.url).returncode == 1
        report = json.loads(_report(folder, '--json').stdout)
        assert report['statuses'] == {'200': PAGES + 1, '404': 2}, report  # the page and robots.txt
        assert sum(report['statuses'].values()) == report['requests'] == len(nginx.log()), report
        harmless(_report(folder, '--html', '-').stdout)


def pace_over_time_adds_up_to_the_requests():
    with site() as nginx, Folder() as folder:
        assert folder.crawl(*FAST, '--interval', '100ms', nginx.url).returncode == 0
        report = json.loads(_report(folder, '--json').stdout)
        [host] = report['hosts']
        assert report['step_s'] == 1 and sum(host['starts']) == host['requests'] == PAGES + 2, host
        assert len(host['starts']) == int(report['seconds']) + 1 and max(host['starts']) <= 25, host
        page = harmless(_report(folder, '--html', '-').stdout)
        assert page.count('figure') == 1 and nginx.url.removeprefix('http://') in page.texts, page.texts


def each_run_of_a_job_has_its_report():
    with site() as nginx, Held(nginx, 5) as door, Folder() as folder:
        code, out, _ = door.stop(door.begin(folder, *FAST, '--interval', '100ms'))
        assert code == 3 and _report(folder).stdout.partition('\n')[2] == out, out
        assert folder.crawl('--resume').returncode == 0
        first, last = (json.loads(_report(folder, '--json', '--run', run, '1').stdout) for run in '12')
        assert (first['end'], last['end']) == ('stopped', 'completed'), (first, last)
        assert first['pages'] + last['pages'] == PAGES + 1, (first, last)


def report_names_the_process_that_uses_the_state_file():
    with site() as nginx, Held(nginx, 1) as door, Folder() as folder:
        process = door.begin(folder, *FAST, '--interval', '100ms')
        run = _report(folder)
        assert run.returncode == 1 and str(process.pid) in run.stderr and run.stderr.count('\n') == 1, run
        assert '"weir jobs list"' in run.stderr, run
        door.stop(process)


if __name__ == '__main__':
    cases.main()
