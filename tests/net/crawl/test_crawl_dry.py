#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir crawl --dry-run: its output, and that it sends only robots.txt requests and writes nothing.
The first argument is the program."""
import json
import os
import sqlite3
import time
from contextlib import closing

from site_rig import Folder, cases, free_port, interrupt, site

ROBOTS = 'User-agent: *\nDisallow: /secret\nCrawl-delay: 2\nSitemap: https://example.org/sitemap.xml\n'


def _dry(folder, *words):
    run = folder.crawl('--dry-run', '--json', *words)
    return run, json.loads(run.stdout) if run.stdout else None


def dry_run_fetches_only_robots_and_writes_nothing():
    with site(**{'robots.txt': ROBOTS}) as nginx, Folder() as folder:
        run = folder.crawl('--dry-run', f'{nginx.url}/', f'{nginx.url}/secret/a', f'{nginx.url}/p1.html')
        assert run.returncode == 0 and run.stderr == '', run
        assert [path for _, _, path, *_ in nginx.log()] == ['/robots.txt'] and os.listdir(folder.name) == [], nginx.log()
        key = nginx.url.removeprefix('http://')
        assert f'{key}: 2 pages, starts at 0.50/s, takes 4.0 s at that pace\n' in run.stdout, run.stdout
        assert f'denied: {nginx.url}/secret/a by line 2, Disallow: /secret\n' in run.stdout, run.stdout
        assert 'robots.txt: fetched now; Crawl-delay 2.0 s, line 3\n' in run.stdout, run.stdout
        assert 'sitemap: https://example.org/sitemap.xml\n' in run.stdout and 'in all 2 pages' in run.stdout, run.stdout


def dry_run_json_has_the_plan_of_each_host():
    with site(**{'robots.txt': ROBOTS}) as nginx, Folder() as folder:
        folder.write('seeds', f'{nginx.url}/p1.html\n{nginx.url}/secret/b\n')
        run, found = _dry(folder, '--seeds-file', 'seeds', f'{nginx.url}/')
        [host] = found['hosts']
        assert run.returncode == 0 and (found['pages'], found['seconds'], found['urls_left_out']) == (2, 4, 0), found
        assert (host['pages'], host['allowed'], host['denied'], host['judged']) == (3, 2, 1, 3), host
        assert host['denied_urls'] == [{'url': f'{nginx.url}/secret/b', 'line': 2, 'rule': '/secret'}], host
        assert (host['crawl_delay_s'], host['interval_s'], host['is_learned'], host['robots']) == (2, 2, False, 'fetched'), host
        assert host['sitemaps'] == ['https://example.org/sitemap.xml'], host


def dry_run_begins_with_the_configured_pace():
    with site() as nginx, Folder() as folder:
        _, found = _dry(folder, '--interval', '5s', f'{nginx.url}/', f'{nginx.url}/a')
        [host] = found['hosts']
        assert host['interval_s'] == 5 and host['seconds'] == found['seconds'] == 10 and host['robots'] == 'none', host
        _, found = _dry(folder, '--pace', 'unlimited', '--global-rate', '0.5', f'{nginx.url}/', f'{nginx.url}/a')
        assert found['hosts'][0]['interval_s'] == 0 and found['seconds'] == 4, found


def offline_dry_run_sends_nothing_and_names_what_is_unknown():
    with site(**{'robots.txt': ROBOTS}) as nginx, Folder() as folder:
        run, found = _dry(folder, '--offline', nginx.url)
        [host] = found['hosts']
        assert run.returncode == 0 and host['robots'] == 'unknown' and '24 hours' in host['robots_why'], host
        assert nginx.log() == [] and os.listdir(folder.name) == []
        run = folder.crawl('--offline', nginx.url)
        assert run.returncode == 2 and '--dry-run' in run.stderr, run
        run = folder.crawl('--dry-run', '--recrawl')
        assert run.returncode == 2 and '--recrawl' in run.stderr, run


def dry_run_of_a_resumable_job_shows_its_queue_and_changes_nothing():
    with site(**{'robots.txt': 'User-agent: *\nDisallow: /p7.html\n'}) as nginx, Folder() as folder:
        process = folder.begin('--pace', 'unlimited', '--interval', '200ms', nginx.url)
        folder.await_lines(4)
        assert interrupt(process)[0] == 3
        asked, lines = len(nginx.log()), folder.read('crawl.jsonl')
        run, found = _dry(folder, '--resume')
        [host] = found['hosts']
        assert run.returncode == 0 and run.stderr == '' and host['robots'] == 'stored' and host['is_learned'], (run, host)
        assert host['pages'] == host['judged'] > 0 and host['interval_s'] == 0.2, host
        assert len(nginx.log()) == asked and folder.read('crawl.jsonl') == lines
        run = folder.crawl('--resume', '--json')
        assert run.returncode == 0 and json.loads(run.stdout)['end'] == 'completed', run


def _crawl_and_set(folder, nginx, column, value):
    """Makes a state file that knows the host, but not its robots.txt."""
    assert folder.crawl('--pace', 'unlimited', '--max-pages', '1', nginx.url).returncode == 0
    with closing(sqlite3.connect(f'{folder.name}/weir.db')) as db, db:
        db.execute('DELETE FROM robots')
        db.execute(f'UPDATE hosts SET {column} = ?', (value,))


def dry_run_does_not_contact_paused_or_deferring_hosts():
    later = int((time.time() + 3600) * 1000)
    for column, value, why in (('paused', 1, 'paused'), ('retry_at_ms', later, 'asked to wait')):
        with site(**{'robots.txt': ROBOTS}) as nginx, Folder() as folder:
            _crawl_and_set(folder, nginx, column, value)
            asked = len(nginx.log())
            run, found = _dry(folder, nginx.url)
            [host] = found['hosts']
            assert len(nginx.log()) == asked, nginx.log()
            assert host['robots'] == 'unknown' and why in host['robots_why'], (run, host)


def pace_set_for_a_host_overrides_that_of_the_crawl():
    with site() as nginx, Folder() as folder:
        _crawl_and_set(folder, nginx, 'set_interval_ms', 1000)
        for words in (['--interval', '5s'], ['--pace', 'unlimited']):
            _, found = _dry(folder, '--offline', *words, nginx.url)
            assert found['hosts'][0]['interval_s'] == 1, found


def dry_run_names_hosts_that_cannot_be_reached():
    with Folder() as folder:
        run, found = _dry(folder, '--attempts', '1', f'http://127.0.0.1:{free_port()}/')
        [host] = found['hosts']
        assert host['robots'] == 'unknown' and host['robots_why'] and os.listdir(folder.name) == [], (run, host)


def dry_run_with_all_seeds_denied_has_status_1():
    with site(**{'robots.txt': 'User-agent: *\nDisallow: /\n'}) as nginx, Folder() as folder:
        run, found = _dry(folder, nginx.url)
        assert run.returncode == 1 and found['pages'] == 0 and found['hosts'][0]['denied'] == 1, run


if __name__ == '__main__':
    cases.main()
