#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A short crawl of the demo web, judged by the requests that its hosts received.

usage: test_demo.py WEIR WEB RUN    RUN is demo/run
"""
import collections
import functools
import importlib.machinery
import importlib.util
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'cli'))

import cases  # noqa: E402

# tolerance between the client's clock and the host's log: two sockets and the scheduler of a busy
# machine
SLACK_S = 0.25


def _load(path):
    loader = importlib.machinery.SourceFileLoader('demo_run', path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader('demo_run', loader))
    loader.exec_module(module)
    return module


@functools.lru_cache(None)
def _crawl():
    """Runs one crawl for all tests. Result: .status, .lines by URL, .report, and by host name
    .truth, .seen and .log."""
    weir, web, run = map(os.path.abspath, sys.argv[1:4])
    demo = _load(run)
    result = type('Crawl', (), {})
    with tempfile.TemporaryDirectory(prefix='weir-e2e-') as folder:
        with demo.Web(web, folder, ['short']) as running:
            result.status = demo.crawl(weir, folder, '--quiet')
        result.report = demo.read_json(f'{folder}/report.json')
        result.truth = {each['name']: each for each in demo.read_json(f'{folder}/truths.json')}
        result.seen = {each['name']: each for each in running.seen}
        with open(f'{folder}/log.jsonl', encoding='utf-8') as file:
            requests = [json.loads(line) for line in file]
        with open(f'{folder}/crawl.jsonl', encoding='utf-8') as file:
            result.lines = [json.loads(line) for line in file]
    result.log = {name: [each for each in requests if each['host'] == name] for name in result.truth}
    return result


def _pages(name):
    """Returns the paths of all pages of a host, and /robots.txt."""
    return {'/', '/robots.txt'} | {f'/page/{number}' for number in range(1, _crawl().truth[name]['pages'])}


def _given(name):
    """Returns how often the host answered each path with status 200."""
    return collections.Counter(each['path'] for each in _crawl().log[name] if each['status'] == 200)


def demo_crawl_completes_by_itself():
    assert _crawl().status in (0, 1), _crawl().status
    assert _crawl().report['end'] == 'completed', _crawl().report


def no_host_receives_a_request_against_its_limits():
    for name, saw in _crawl().seen.items():
        assert set(saw['offences'].values()) == {0}, (name, saw)
    assert {host['too_soon'] for host in _crawl().report['hosts']} == {0}, _crawl().report


def crawl_delay_separates_every_two_requests():
    times = [each['at'] / 1e9 for each in _crawl().log['delay']]
    gaps = [later - sooner for sooner, later in zip(times, times[1:])]
    assert len(gaps) >= 5 and min(gaps) >= 2 - SLACK_S, gaps


def pages_of_a_host_without_limits_are_fetched_once_each():
    assert _given('fast') == dict.fromkeys(_pages('fast'), 1), _given('fast')


def announced_limits_of_hosts_cost_no_page():
    for name in ('slow', 'delay', 'bucket', 'quota', 'mute'):
        assert set(_given(name)) == _pages(name), (name, _pages(name) ^ set(_given(name)))


def faults_and_unannounced_limits_cost_few_pages():
    for name in ('silent', 'ban', 'flaky', 'outage'):
        assert len(_given(name)) > 0.9 * len(_pages(name)), (name, _pages(name) ^ set(_given(name)))


def paths_forbidden_by_robots_txt_are_never_requested():
    for name, log in _crawl().log.items():
        assert not [each for each in log if each['path'].startswith('/private/')], name


def pages_wait_until_robots_txt_is_available():
    first = next(each for each in _crawl().log['mute'] if each['path'] != '/robots.txt')
    given = next(each for each in _crawl().log['mute'] if each['path'] == '/robots.txt' and each['status'] == 200)
    assert given['at'] < first['at']


def endless_body_is_cut():
    assert 0 < _crawl().seen['huge']['huge_bytes'] < 50000000, _crawl().seen['huge']
    assert {'/', '/page/1'} <= set(_given('huge'))


def redirect_loops_end():
    asked = collections.Counter(each['path'] for each in _crawl().log['maze'])
    assert max(asked.values()) == 1, asked
    assert len([path for path in asked if path.startswith('/end/')]) == 5, asked
    assert len([path for path in asked if path.startswith('/long/')]) < 40, asked


def endless_site_is_left_after_a_limited_number_of_pages():
    assert 10 < _crawl().seen['trap']['requests'] < 300, _crawl().seen['trap']


def every_url_has_exactly_one_output_line():
    urls = collections.Counter(line['url'] for line in _crawl().lines)
    assert max(urls.values()) == 1, urls.most_common(3)
    fetched = {line['url'] for line in _crawl().lines if line['verdict'] == 'fetched'}
    for name in ('fast', 'bucket', 'delay'):
        host = _crawl().truth[name]['host']
        assert {f'http://{host}{path}' for path in _pages(name) - {'/robots.txt'}} <= fetched, name


if __name__ == '__main__':
    cases.main()
