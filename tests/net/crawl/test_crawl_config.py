#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir crawl, fetch and warm with settings from a file and the environment, against a real nginx.
The first argument is the program."""
import collections
import json
import os
import subprocess
import sys

from site_rig import PAGES, PATIENCE_S, SLACK_S, Door, Folder, all_of, cases, site

SETTINGS = '''
pace:
  profile: strict
  interval: 80ms
  open: 20s
crawl:
  allow-private: true
  user-agent: tester/1.0
  exclude: ["*/p7.html"]
  max-pages: 12
'''
SECRET = '''
crawl:
  allow-private: true
  pace: unlimited
  max-pages: 12
  header: ["X-Test: s3cret"]
'''


def _run(folder, *words, **variables):
    return subprocess.run([os.path.abspath(sys.argv[1]), *words], cwd=folder.name, capture_output=True, text=True, timeout=PATIENCE_S,
                          stdin=subprocess.DEVNULL, env=dict(os.environ, **variables))


def crawl_follows_its_configuration_file():
    with site() as nginx, Door(nginx) as door, Folder() as folder:
        folder.write('weir.yaml', SETTINGS)
        run = _run(folder, 'crawl', '--config', 'weir.yaml', door.url)
        assert run.returncode == 0, run
        assert len(folder.by_url()) == 12 and f'{door.url}/p7.html' not in folder.by_url()
        assert {agent for *_, agent, _ in nginx.log()} == {'tester/1.0'}, nginx.log()
        assert min(door.gaps()) >= 0.08 - SLACK_S, door.gaps()


def flags_override_the_environment_which_overrides_the_file():
    with site() as nginx, Folder() as folder:
        folder.write('weir.yaml', SETTINGS)
        run = _run(folder, 'crawl', '--user-agent', 'flag/1.0', '--pace', 'unlimited', '--interval', '0', nginx.url,
                   WEIR_CONFIG='weir.yaml', WEIR_CRAWL_MAX_PAGES='20', WEIR_CRAWL_USER_AGENT='environment/1.0')
        assert run.returncode == 0, run
        assert len(folder.by_url()) == 20
        assert {agent for *_, agent, _ in nginx.log()} == {'flag/1.0'}


def resumed_job_keeps_the_configuration_it_started_with():
    with site() as nginx, Door(nginx) as door, Folder() as folder:
        folder.write('weir.yaml', SETTINGS.replace('max-pages: 12', 'max-time: 1s'))
        run = _run(folder, 'crawl', '--config', 'weir.yaml', door.url)
        before = set(folder.by_url())
        assert run.returncode == 3 and len(before) < PAGES, run
        folder.write('weir.yaml', 'crawl: {user-agent: other/1.0, exclude: ["*"], max-time: 9ms}\npace: {open: 30s}\n')
        run = _run(folder, 'crawl', '--resume', '--max-time', '0', '--config', 'weir.yaml')
        assert run.returncode == 0, run
        assert set(folder.by_url()) == all_of(door) - {f'{door.url}/p7.html'}
        assert {agent for *_, agent, _ in nginx.log()} == {'tester/1.0'}
        assert max(collections.Counter(path for _, _, path, *_ in nginx.log()).values()) == 1
        assert min(door.gaps()) >= 0.08 - SLACK_S, door.gaps()


def recrawl_keeps_the_configuration_of_the_first_crawl():
    with site() as nginx, Folder() as folder:
        folder.write('weir.yaml', SETTINGS.replace('interval: 80ms', 'interval: 5ms'))
        assert _run(folder, 'crawl', '--config', 'weir.yaml', nginx.url).returncode == 0
        run = _run(folder, 'crawl', '--recrawl', '--out', 'new.jsonl')
        assert run.returncode == 0 and len(folder.by_url('new.jsonl')) == 12, run
        assert {agent for *_, agent, _ in nginx.log()} == {'tester/1.0'}


def configuration_secrets_are_not_stored_and_are_read_again():
    with site() as nginx, Folder() as folder:
        folder.write('weir.yaml', SECRET)
        assert _run(folder, 'crawl', '--config', 'weir.yaml', '--max-bytes', '1', nginx.url).returncode == 3
        for name in os.listdir(folder.name):
            with open(folder.path(name), 'rb') as file:
                assert name == 'weir.yaml' or b's3cret' not in file.read(), name
        run = _run(folder, 'crawl', '--resume')
        assert run.returncode == 2 and 'was started with --header' in run.stderr, run
        assert _run(folder, 'crawl', '--resume', '--max-bytes', '0', '--config', 'weir.yaml').returncode == 0
        assert {test for _, _, path, *_, test in nginx.log() if path != '/robots.txt'} == {'s3cret'}, nginx.log()


def crawl_delay_is_multiplied_if_configured():
    with site(**{'robots.txt': 'User-agent: *\nCrawl-delay: 2\n'}) as nginx, Door(nginx) as door, Folder() as folder:
        folder.write('weir.yaml', 'pace: {robots-delay-factor: 0.05}\ncrawl: {allow-private: true, max-pages: 12}\n')
        run = _run(folder, 'crawl', '--config', 'weir.yaml', '--dry-run', '--json', nginx.url)
        # the adaptive pace starts at one per second
        assert run.returncode == 0 and json.loads(run.stdout)['hosts'][0]['interval_s'] == 1, run.stdout
        run = _run(folder, 'crawl', '--config', 'weir.yaml', '--pace', 'unlimited', door.url)
        assert run.returncode == 0, run
        assert 0.1 - SLACK_S <= min(door.gaps()) < 1, door.gaps()  # 100 ms between requests, not 2 s


def fetch_and_warm_follow_the_configured_pace():
    with site() as nginx, Folder() as folder:
        folder.write('weir.yaml', 'pace: {profile: strict, interval: 80ms, max-hosts: 10, shards: 2, ttl: 5m}\n'
                                  'fetch: {allow-private: true}\nwarm: {allow-private: true, json: true}\n')
        for command in 'fetch', 'warm':
            with Door(nginx) as door:  # the two commands keep no state: the time between them is not a gap
                urls = [f'{door.url}/p{number}.html' for number in range(10)]
                run = _run(folder, command, *urls, WEIR_CONFIG='weir.yaml')
                assert run.returncode == 0 and run.stdout, run
                assert len(door.gaps()) >= 9 and min(door.gaps()) >= 0.08 - SLACK_S, (command, door.gaps())


if __name__ == '__main__':
    cases.main()
