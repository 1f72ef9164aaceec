#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir simulate --limit: how many requests of given traffic each limit grants, and whether the
guide's figures are correct. The second argument is the source folder."""
import glob
import json
import os
import random
import re
import shlex
import sys
import tempfile
import xml.etree.ElementTree as xml

import cases
from program import refusal, weir

MEMBERS = ['limit', 'asked', 'granted', 'window_s', 'most_in_window', 'most_in_flight', 'longest_wait_s',
           'retry_after_min_s', 'retry_after_max_s']
EDGE = '1 at once, pause 8s, 100/s for 4s, pause 3s'


def _words(limits, traffic, *words):
    return [*(word for limit in limits for word in ('--limit', limit)), '--traffic', traffic, *words]


def _tried(limits, traffic, *words):
    """Runs weir simulate --limit and returns {limit: its JSON object}."""
    run = weir('simulate', *_words(limits, traffic, *words), '--json')
    assert run.returncode == 0 and run.stderr == '', run.stderr
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    assert [row['limit'] for row in rows] == list(limits) and all(list(row) == MEMBERS for row in rows), rows
    return {row['limit']: row for row in rows}


def _one(limit, traffic, *words):
    return _tried([limit], traffic, *words)[limit]


def _source(*path):
    with open(os.path.join(sys.argv[2], *path), encoding='utf-8') as file:
        return file.read()


# ---- what is granted ----

def each_algorithm_grants_its_known_count_at_a_window_edge():
    kinds = {'': (140, 139), ' burst=20': (60, 59), ' fixed_window': (200, 199), ' sliding_window': (120, 119),
             ' sliding_log': (101, 100), ' leaky_bucket': (41, 40)}
    rows = _tried([f'100/10s{kind}' for kind in kinds], EDGE)
    for kind, (granted, most) in kinds.items():
        row = rows[f'100/10s{kind}']
        assert (row['asked'], row['granted'], row['window_s'], row['most_in_window']) == (401, granted, 10, most), row


def no_limit_is_exceeded_by_random_traffic():
    draw = random.Random(7)
    most = {'20/s': 40, '20/s burst=5': 25, '20/s fixed_window': 40, '20/s sliding_window': 40, '20/s sliding_log': 20,
            '20/s leaky_bucket': 20, '5/s, 20/s sliding_log': 10}
    for _ in range(25):
        parts = [draw.choice((f'{draw.randint(1, 90)}/s for {draw.randint(1, 3000)}ms', f'{draw.randint(1, 70)} at once',
                              f'pause {draw.randint(1, 1500)}ms')) for _ in range(8)]
        traffic = ', '.join(parts) + ', 1 at once'
        words = draw.choice(([], ['--wait', '2s']))
        rows = _tried([*most, 'concurrent=7'], traffic, '--take', '300ms', *words)
        for limit, bound in most.items():
            assert rows[limit]['most_in_window'] <= bound, (traffic, words, rows[limit])
        assert rows['concurrent=7']['most_in_flight'] <= 7, (traffic, words, rows['concurrent=7'])
        assert rows['20/s leaky_bucket']['most_in_flight'] <= 6


def finished_requests_make_room_under_a_concurrency_limit():
    assert _one('concurrent=3', '10/s for 2s', '--take', '1s')['granted'] == 6
    assert _one('concurrent=3', '10/s for 2s', '--take', '100ms')['granted'] == 20
    slow = _one('concurrent=3', '10/s for 2s', '--take', '1s', '--wait', '1h')
    assert (slow['granted'], slow['most_in_flight']) == (20, 3)
    assert slow['longest_wait_s'] == 4.2  # the last request arrives at 1.9 s and starts at 6.1 s, three run at a time


def waiting_request_is_granted_in_time_or_gives_up():
    rows = _tried(['10/s burst=5', '10/s leaky_bucket', '10/s leaky_bucket burst=60'], '60 at once', '--wait', '10s')
    assert [row['granted'] for row in rows.values()] == [60, 11, 60]
    assert [row['longest_wait_s'] for row in rows.values()] == [5.5, 1, 5.9]
    assert _one('10/s burst=1', '60 at once', '--wait', '2s')['granted'] == 21
    assert _one('5/h fixed_window', '6 at once', '--wait', '1h')['longest_wait_s'] == 3600


def simulated_retry_after_is_the_one_the_daemon_sends():
    def told(limit, traffic='20 at once'):
        row = _one(limit, traffic)
        return row['retry_after_min_s'], row['retry_after_max_s']
    assert told('10/s') == (1, 1) and told('5/h') == (720, 720) and told('5/h fixed_window') == (3600, 3600)
    assert told('2/m sliding_log', '2 at once, pause 20500ms, 2 at once') == (40, 40)
    assert told('concurrent=2') == (1, 1) and told('30/s') == (0, 0)


# ---- the guide ----

def output_shown_in_the_guide_is_the_real_output():
    shown = re.findall(r'^\$ weir (simulate --limit .*)\n((?:.*\n)*?)```', _source('docs', 'guide', 'choosing.md'), re.M)
    assert shown
    for command, output in shown:
        assert weir(*shlex.split(command)).stdout == output, command


def pictures_of_the_guide_are_up_to_date():
    guide, pictures = _source('docs', 'guide', 'choosing.md'), glob.glob(os.path.join(sys.argv[2], 'docs/guide/img/limit-*.svg'))
    assert len(pictures) == 5
    for picture in pictures:
        assert f'(img/{os.path.basename(picture)})' in guide
        with open(picture, encoding='utf-8') as file:
            text = file.read()
        texts = [node for node in xml.fromstring(text).iter('{http://www.w3.org/2000/svg}text')]
        title = next(node.text for node in texts if node.get('class') == 'title')
        traffic, take, wait = re.fullmatch(r'(.*); each takes (\S+) s(?:, and waits up to (\S+) s)?', title).groups()
        limits = [node.text for node in texts if node.get('class') == 'name']
        with tempfile.TemporaryDirectory() as folder:
            again = os.path.join(folder, 'x.svg')
            run = weir('simulate', *_words(limits, traffic, '--take', take, '--wait', wait or '0', '--plot', again))
            assert run.returncode == 0, run.stderr
            with open(again, encoding='utf-8') as file:
                assert file.read() == text, f'{picture} is out of date: make plots'
        assert 'prefers-color-scheme: dark' in text and not re.search(r'nan|inf', re.sub(r'<text.*?</text>', '', text))


def figures_of_the_guide_match_the_simulation():
    guide = _source('docs', 'guide', 'choosing.md')
    flight = '10/s for 5s, 40/s for 1s, 10/s for 6s'
    rows = _tried(['20/s', 'concurrent=10'], flight, '--take', '2s')
    assert rows['20/s']['most_in_flight'] == 49 and '49 after the burst' in guide
    assert rows['concurrent=10']['most_in_flight'] == 10
    assert _one('100/10s leaky_bucket', '15/s for 30s')['granted'] == 30 * 7.5 and '7.5 a second' in guide


# ---- what is refused ----

def invalid_arguments_are_refused_with_a_reason():
    for traffic, why in (('x', 'not understood'), ('', 'not understood'), ('5 at once,', 'not understood'),
                         ('0 at once', 'not understood'), ('5 at once twice', 'not understood'),
                         ('pause 5s', 'no requests'), ('5/s for 5 parsecs', 'duration "5 parsecs"'), ('0/s for 5s', 'rate "0/s"'),
                         ('1000000/s for 2s', 'more than 1000000 requests'), (','.join(['1 at once'] * 33), 'more than 32 parts'),
                         ('1/s for 1ns, pause 100000d', 'duration'), ('4294967295/1ns for 1d', 'more than 1000000'),
                         # their sum modulo 2^32 is 999998
                         ('999999 at once, 4294967295/1s for 1s', 'more than 1000000')):
        assert why in refusal('simulate', '--limit', '10/s', '--traffic', traffic), traffic
    assert 'there is no rate' in refusal('simulate', '--limit', '10/s,')
    assert 'rate "ten/s": not a digit at character 1' in refusal('simulate', '--limit', 'ten/s')
    assert 'a word that is not understood at character 6' in refusal('simulate', '--limit', '10/s fast')
    assert 'more than 8 limits' in refusal('simulate', '--limit', ','.join(['1/s'] * 9))
    assert 'more than 8 limits' in refusal('simulate', '--limit', '1' * 300)
    for words in (['P1c'], ['--pacer', 'tide'], ['--random', '3'], ['--trace', '/dev/null']):
        assert 'leave them out' in refusal('simulate', '--limit', '10/s', *words), words
    run = weir('simulate', '--limit', '10/s', '--plot', '/nowhere/x.svg')
    assert run.returncode == 1 and 'cannot write /nowhere/x.svg' in run.stderr


if __name__ == '__main__':
    cases.main()
