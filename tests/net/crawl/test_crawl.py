#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir crawl as users run it, against a real nginx. The first argument is the program."""
import collections
import json
import os

from site_rig import PAGES, SLACK_S, Door, Folder, Nginx, all_of, cases, free_port, site

FAST = ('--pace', 'unlimited')
ROBOTS = 'User-agent: *\nDisallow: /secret\n'


def every_page_of_a_site_is_fetched_once_and_has_its_line():
    with site() as nginx, Folder() as folder:
        run = folder.crawl(*FAST, nginx.url)
        assert run.returncode == 0 and run.stderr == '', run
        lines = folder.by_url()
        assert set(lines) == all_of(nginx), set(lines) ^ all_of(nginx)
        assert all(line['status'] == 200 and line['verdict'] == 'fetched' for line in lines.values())
        asked = collections.Counter(path for _, _, path, *_ in nginx.log())
        assert set(asked.values()) == {1} and len(asked) == PAGES + 2, asked


def crawl_line_describes_each_page_and_its_referrer():
    with site() as nginx, Folder() as folder:
        assert folder.crawl(*FAST, nginx.url).returncode == 0
        lines = folder.by_url()
        home, first = lines[f'{nginx.url}/'], lines[f'{nginx.url}/p0.html']
        assert home['depth'] == 0 and home['referrer'] is None and home['title'] == 'Home', home
        assert first['depth'] == 1 and first['referrer'] == f'{nginx.url}/' and first['title'] == 'Page 0', first
        assert first['attempts'] == 1 and first['links'] == 5 and first['bytes'] > 0 and first['digest'], first
        assert first['content_type'].startswith('text/html') and first['error'] is None, first
        assert first['total_ms'] >= 0 and isinstance(first['wait_ms'], dict), first


def crawl_with_one_missing_page_has_status_1():
    with site(**{'index.html': '<a href="p0.html">a</a><a href="gone">b</a>'}) as nginx, Folder() as folder:
        run = folder.crawl(*FAST, nginx.url)
        assert run.returncode == 1 and ' 1 failed' in run.stdout, run
        gone = folder.by_url()[f'{nginx.url}/gone']
        assert gone['status'] == 404 and gone['verdict'] == 'failed' and gone['error'] == 'http_404', gone
        assert gone['referrer'] == f'{nginx.url}/', gone


def page_denied_by_robots_is_not_fetched_and_no_failure():
    home = '<a href="p0.html">a</a><a href="/secret/x">b</a>'
    with site(**{'index.html': home, 'robots.txt': ROBOTS, 'secret/x': 'no'}) as nginx, Folder() as folder:
        run = folder.crawl(*FAST, nginx.url)
        assert run.returncode == 0 and '1 denied by robots.txt' in run.stdout, run
        assert folder.by_url()[f'{nginx.url}/secret/x']['verdict'] == 'robots'
        assert not any(path.startswith('/secret') for _, _, path, *_ in nginx.log())


def redirects_are_followed_and_targets_of_seeds_are_in_scope():
    with site() as target, Nginx(f'location / {{ return 301 {target.url}/; }}') as nginx, Folder() as folder:
        run = folder.crawl(*FAST, nginx.url)
        assert run.returncode == 0, run
        lines = folder.by_url()
        assert lines[f'{nginx.url}/']['verdict'] == 'redirect' and all_of(target) < set(lines), lines


def seeds_come_from_a_file_or_a_pipe_and_bad_lines_are_counted():
    with site() as one, site() as other, Folder() as folder:
        folder.write('seeds', f'# sites\n{one.url}\nnot a url\n  {other.url}/p1.html  \n')
        run = folder.crawl(*FAST, '--depth', '1', '--seeds-file', 'seeds', '--report', 'r.json')
        assert run.returncode == 1 and 'seeds, line 3: "not a url" is skipped' in run.stderr, run
        assert 'seeds: 1 skipped' in run.stdout and json.loads(folder.read('r.json'))['seeds_refused'] == 1, run
        assert {f'{one.url}/p0.html', f'{other.url}/p3.html'} < set(folder.by_url())
        run = folder.crawl(*FAST, '--out', 'piped', input=f'{one.url}/p2.html\n')
        assert run.returncode == 0 and len(folder.by_url('piped')) == PAGES, run


def links_out_of_scope_are_not_followed():
    with site() as other, Folder() as folder:
        home = f'<a href="/docs/a">1</a><a href="/b">2</a><a href="{other.url}/">3</a><a href="/docs/x.zip">4</a>'
        with site(**{'docs/index.html': home, 'docs/a': 'a', 'b': 'b'}) as nginx:
            run = folder.crawl(*FAST, '--scope', 'prefix', f'{nginx.url}/docs/')
            assert run.returncode == 0 and set(folder.by_url()) == {f'{nginx.url}/docs/', f'{nginx.url}/docs/a'}, run
            run = folder.crawl(*FAST, '--out', 'o', '--exclude', '*/docs/?', f'{nginx.url}/docs/')
            assert set(folder.by_url('o')) == {f'{nginx.url}/docs/', f'{nginx.url}/b'}, run
        assert other.log() == []


def budgets_of_pages_and_depth_are_kept():
    with site() as nginx, Folder() as folder:
        run = folder.crawl(*FAST, '--max-pages', '7', nginx.url)
        assert run.returncode == 0 and 5 <= len(folder.by_url()) <= 7, run  # each loop takes its own part of the budget
        run = folder.crawl(*FAST, '--depth', '1', '--out', 'o', nginx.url)
        assert set(folder.by_url('o')) == {f'{nginx.url}/', f'{nginx.url}/p0.html'}, run


def requests_to_nginx_keep_the_configured_interval():
    with site() as nginx, Door(nginx) as door, Folder() as folder:
        run = folder.crawl('--interval', '150ms', '--max-rate', '100', '--pace', 'strict', '--max-pages', '8', door.url)
        assert run.returncode == 0, run
        assert len(door.gaps()) >= 5 and min(door.gaps()) >= 0.15 - SLACK_S, door.gaps()


def default_pace_of_crawl_begins_at_one_a_second():
    """R1, U8: without options weir is never fast."""
    with site() as nginx, Door(nginx) as door, Folder() as folder:
        assert folder.crawl('--depth', '2', '--loops', '1', '--max-pages', '7', door.url).returncode == 0
        gaps = door.gaps()
        assert len(gaps) == 6 and gaps[0] >= 1 - SLACK_S and min(gaps) >= 1 / 8 - SLACK_S, gaps


def headers_go_to_the_seeds_origin_only():
    with site() as other, Folder() as folder:
        with site(**{'index.html': f'<a href="p0.html">1</a><a href="{other.url}/">2</a>'}) as nginx:
            run = folder.crawl(*FAST, '--scope', 'any', '--header', 'X-Test: yes', '--depth', '1', '--contact',
                               'https://me.example/', nginx.url)
            assert run.returncode == 0, run
            assert {test for *_, test in nginx.log()[1:]} == {'yes'}, nginx.log()
            assert {agent for *_, agent, _ in nginx.log()} == {'weir/0.1.0 (+https://me.example/)'}, nginx.log()
            assert {test for *_, test in other.log()} == {'-'}, other.log()


def report_in_json_agrees_with_what_nginx_logged():
    with site() as nginx, Folder() as folder:
        run = folder.crawl(*FAST, '--json', '--report', 'r.json', nginx.url)
        report = json.loads(run.stdout)
        assert run.returncode == 0 and report == json.loads(folder.read('r.json')), run
        assert report['end'] == 'completed' and report['why'] is None and report['job'] == 1, report
        assert report['pages'] == report['fetched'] == PAGES + 1 and report['failed'] == report['queued'] == 0, report
        assert report['requests'] == len(nginx.log()) and report['robots_requests'] == 1, report
        [host] = report['hosts']
        assert host['host'] == nginx.url.removeprefix('http://') and host['requests'] == len(nginx.log()), host
        assert report['hosts_left_out'] == 0 and isinstance(host['waited_s'], dict), host
        assert host['failed'] == 0 and host['ok'] == host['requests'], 'a missing robots.txt is no failure'


def report_names_failures_and_skipped_links():
    home = '<a href="p0.html">a</a><a href="gone">b</a><a href="http://127.0.0.9/">elsewhere</a>'
    with site(**{'index.html': home}) as nginx, Folder() as folder:
        run = folder.crawl(*FAST, '--depth', '1', '--report', 'r.json', nginx.url)
        report = json.loads(folder.read('r.json'))
        assert f'\nfailed: {nginx.url}/gone: the server answered 404\n' in run.stdout, run
        assert '\nskipped: 4 links deeper than --depth 1\n' in run.stdout, run
        assert report['failed_url'] == f'{nginx.url}/gone' and 'answered 404' in report['failed_why'], report
        assert (report['links_beyond_depth'], report['links_beyond_pages']) == (4, 0), report
        run = folder.crawl(*FAST, '--max-pages', '2', '--out', 'o', '--report', 'r.json', nginx.url)
        assert '\nskipped: 5 links beyond --max-pages\n' in run.stdout and 'deeper' not in run.stdout, run
        assert json.loads(folder.read('r.json'))['links_beyond_pages'] == 5
        run = folder.crawl(*FAST, '--max-pages', '1', '--out', 'p', nginx.url)
        assert ': 1 page, ' in run.stdout, run


def report_goes_to_standard_output_if_requested():
    with site() as nginx, Folder() as folder:
        run = folder.crawl(*FAST, '--report', '-', nginx.url)
        assert run.returncode == 0 and json.loads(run.stdout)['pages'] == PAGES + 1, run
        assert run.stderr.startswith('completed after ') and not os.path.exists(folder.path('-')), run


def text_report_has_a_line_for_each_host():
    with site() as one, site() as other, Folder() as folder:
        run = folder.crawl(*FAST, '--depth', '1', one.url, other.url)
        assert run.returncode == 0 and run.stdout.startswith('completed after '), run
        for nginx in (one, other):
            assert nginx.url.removeprefix('http://') in run.stdout, run.stdout
        assert 'reached' in run.stdout and 'waited for' in run.stdout, run.stdout


def quiet_crawl_prints_nothing():
    with site() as nginx, Folder() as folder:
        run = folder.crawl(*FAST, '--quiet', nginx.url)
        assert (run.returncode, run.stdout, run.stderr) == (0, '', ''), run


def quiet_crawl_that_fails_prints_the_reason_in_one_line():
    with Folder() as folder:
        run = folder.crawl('--quiet', '--attempts', '1', 'http://127.0.0.1:1/')
        assert (run.returncode, run.stdout) == (1, ''), run
        assert run.stderr == 'weir crawl: 1 of 1 pages failed, first http://127.0.0.1:1/: no connection\n', run


def standard_output_has_only_lines_if_they_go_there():
    with site() as nginx, Folder() as folder:
        run = folder.crawl(*FAST, '--out', '-', nginx.url)
        assert run.returncode == 0 and {json.loads(line)['url'] for line in run.stdout.splitlines()} == all_of(nginx), run
        assert run.stderr.startswith('completed after '), run


def second_crawl_is_a_new_job_and_appends_lines_with_append():
    with site() as nginx, Folder() as folder:
        assert folder.crawl(*FAST, nginx.url).returncode == 0
        assert folder.crawl(*FAST, nginx.url).returncode == 2
        run = folder.crawl(*FAST, '--append', '--json', '--depth', '1', nginx.url)
        assert run.returncode == 0 and json.loads(run.stdout)['job'] == 2, run
        assert len(folder.lines()) == PAGES + 1 + 2


def log_has_a_line_for_each_request():
    with site() as nginx, Folder() as folder:
        assert folder.crawl(*FAST, '--log', 'log', nginx.url).returncode == 0
        assert len([json.loads(line) for line in folder.read('log').splitlines()]) == len(nginx.log())


def crawl_that_reaches_no_host_fails_with_advice():
    with Folder() as folder:
        run = folder.crawl(*FAST, '--max-defer', '1s', '--failure-threshold', '0', f'http://127.0.0.1:{free_port()}/')
        assert run.returncode == 1 and '"error"' in run.stderr and 'online' in run.stderr, run
        [line] = folder.lines()
        assert line['status'] is None and line['verdict'] in ('failed', 'expired') and line['error'], line


def totals_and_hosts_count_the_same_requests():
    with site() as nginx, Folder() as folder:
        dead = f'https://127.0.0.1:{free_port()}'
        run = folder.crawl(*FAST, '--json', '--ignore-robots', nginx.url, f'{dead}/a', f'{dead}/b', f'{dead}/c')
        report = json.loads(run.stdout)
        by_host = {host['host']: host['requests'] for host in report['hosts']}
        assert report['requests'] == sum(by_host.values()), report
        assert by_host[dead.removeprefix('https://')] == 9 and by_host[nginx.url.removeprefix('http://')] == PAGES + 1, report
        assert report['failed'] == 3 and report['failed_url'].startswith(dead) and report['failed_why'], report


def crawl_of_a_private_address_is_refused_unless_allowed():
    with site() as nginx, Folder() as folder:
        command = [word for word in folder.command(*FAST, nginx.url) if word != '--allow-private']
        folder.command = lambda *words: command
        run = folder.crawl()
        assert run.returncode == 2 and '--allow-private' in run.stderr and nginx.log() == [], run


def failures_in_a_row_end_the_crawl():
    with Folder() as folder:
        folder.write('seeds', ''.join(f'http://127.0.0.1:{free_port()}/{i}\n' for i in range(12)))
        run = folder.crawl(*FAST, '--ignore-robots', '--attempts', '1', '--failure-threshold', '5', '--json', '--seeds-file',
                           'seeds')
        report = json.loads(run.stdout)
        assert run.returncode == 1 and report['end'] == 'failed' and 'in a row' in report['why'], run


if __name__ == '__main__':
    cases.main()
