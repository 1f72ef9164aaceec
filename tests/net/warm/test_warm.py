#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir warm as users run it, against a real caching nginx. The first argument is the program."""
import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import time

from cached_site import SLACK_S, Site, cases, refusal, urlset, weir

U12 = (['GET'], ['GET', 'HEAD', 'GET'], ['GET', 'HEAD', 'HEAD', 'GET'], ['GET', 'HEAD', 'HEAD', 'HEAD', 'GET'])


def one_paced_warm_run_raises_the_hit_ratio_from_0_to_100_percent():
    """Judged by nginx's log: at most the requests per page of U12, and all requests keep the
    interval."""
    with Site(pages=60) as site:
        site.list()
        lines, report, run = site.warm('--pace', 'strict', '--interval', '50ms', site.url, unlimited=False)
        assert run.returncode == 0, run
        assert report['hit_ratio_before'] == 0 and report['hit_ratio_after'] >= 0.99, report
        assert report['pages'] == report['answered'] == 61 and len(lines) == 61, report
        asked = site.asked()
        for path in ['/', *site.paths]:
            assert asked[path] in U12 and len(asked[path]) > 1, (path, asked[path])
        assert len(site.origin_asked()) == 61, 'the cache requests each page once'
        times = [at for at, *_ in site.log()]
        spans = [later - earlier for earlier, later in zip(times, times[40:])]
        assert min(spans) >= 40 * 0.05 - 0.5, 'nginx logs the time of the response, which may be late'
        assert 'hit ratio: 0.0 % before, 100.0 % after' in run.stdout, run.stdout


def warm_cache_is_asked_once_for_each_page():
    with Site(pages=5) as site:
        site.list()
        site.warm()
        _, report, run = site.warm()
        assert run.returncode == 0 and report['hit_ratio_before'] == 1 and report['page_requests'] == 6, report
        assert all(asked == ['GET', 'HEAD', 'GET', 'GET'] for path, asked in site.asked().items() if path[1:].isdigit())


def bypassed_page_is_never_requested_twice():
    """U12: repeated requests to pages with BYPASS once took 54 s per page."""
    with Site(files={'private/a': 'x', 'private/b': 'x'}) as site:
        site.list(['/private/a', '/private/b'])
        lines, report, run = site.warm(f'{site.url}/sitemap.xml')
        assert run.returncode == 0 and report['cache']['bypass'] == {'before': 2, 'after': 2}, report
        assert {line['cache_after'] for line in lines.values()} == {'bypass'} and report['hit_ratio_after'] == 0
        assert site.asked() == {'/robots.txt': ['GET'], '/sitemap.xml': ['GET'], '/private/a': ['GET'],
                                '/private/b': ['GET']}
        assert 'the cache bypasses every page' in run.stdout, run.stdout


def persistent_miss_is_probed_three_times_at_half_second_steps():
    with Site(files={'never/a': 'x'}) as site:
        lines, report, _ = site.warm(f'{site.url}/never/a')
        log = [(at, method) for at, method, path, *_ in site.log() if path == '/never/a']
        assert [method for _, method in log] == ['GET', 'HEAD', 'HEAD', 'HEAD'], log
        gaps = [later[0] - earlier[0] for earlier, later in zip(log, log[1:])]
        assert min(gaps) >= 0.5 - SLACK_S, gaps
        line = lines[f'{site.url}/never/a']
        assert line['probes'] == 3 and line['requests'] == 4 and line['cache_after'] == 'miss', line
        assert line['saved_s'] is None and report['cache']['miss'] == {'before': 1, 'after': 1}


def expired_page_is_fetched_and_probed_again():
    with Site(files={'short/a': 'x'}) as site:
        url = f'{site.url}/short/a'
        site.warm(url)
        time.sleep(2.1)  # nginx counts whole seconds
        lines, report, run = site.warm(url)
        assert run.returncode == 0 and report['cache']['expired']['before'] == 1, report
        assert site.asked()['/short/a'].count('HEAD') >= 2 and lines[url]['probes'] >= 1, lines


def warm_shows_its_progress_on_a_terminal():
    screen, terminal = pty.openpty()
    with Site(pages=3) as site:
        site.list()
        run = subprocess.run([os.path.abspath(sys.argv[1]), 'warm', '--allow-private', '--pace', 'unlimited', site.url],
                             stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, timeout=60)
    os.close(terminal)
    shown = os.read(screen, 65536).decode()
    os.close(screen)
    assert run.returncode == 0 and ' of 4 pages, ' in shown and 'hit ratio: 0.0 % before, 100.0 % after' in shown, shown


def warm_fetches_the_front_page_first_and_each_page_once():
    with Site(pages=3) as site:
        site.list(['/1', '/0', '/1', '/%30', '/', '/2#part', '/1'])
        _, report, run = site.warm()
        pages = [path for _, method, path, *_ in site.log() if not path.endswith(('.xml', '.txt'))]
        assert run.returncode == 0 and report['pages'] == 4, report
        assert pages[0] == '/' and pages[1] == '/1' and set(pages) == {'/', '/0', '/1', '/2'}, pages


def broken_pages_are_listed_and_make_warm_fail():
    with Site(pages=2) as site:
        site.list(['/0', '/1', '/gone'])
        lines, report, run = site.warm()
        assert run.returncode == 1 and report['broken'] == 1, report
        assert report['broken_pages'] == [{'url': f'{site.url}/gone', 'status': 404, 'failure': None, 'detail': None}]
        assert lines[f'{site.url}/gone']['cache_before'] is None and site.asked()['/gone'] == ['GET']
        assert f'404  {site.url}/gone' in run.stdout, run.stdout


def missed_hit_ratio_makes_warm_fail():
    with Site(pages=3, files={'private/a': 'x'}) as site:
        site.list([*site.paths, '/private/a'])
        words = [f'{site.url}/sitemap.xml', '--quiet', '--min-hit-ratio']
        assert site.warm(*words, '75')[2].returncode == 0
        run = site.warm(*words, '76')[2]
        assert run.returncode == 1 and run.stdout == '', run
        assert run.stderr == 'weir warm: the hit ratio is 75.0 %, below the 76 % of --min-hit-ratio\n', run.stderr


def warm_does_not_request_pages_denied_by_robots():
    with Site(pages=4) as site:
        site.write('robots.txt', f'User-agent: *\nDisallow: /2\nSitemap: {site.url}/map.xml\n')
        site.list(name='map.xml')
        lines, report, run = site.warm()
        assert run.returncode == 0 and report['denied'] == 1 and report['answered'] == 4, report
        assert site.asked()['/robots.txt'] == ['GET'], 'once, for rules and sitemaps'
        assert '/2' not in site.asked() and lines[f'{site.url}/2']['failure'] == 'robots'
        assert 'pages denied by robots.txt: 1\n' in run.stdout
        site.warm('--ignore-robots', site.url)
        assert '/2' in site.asked()


def warm_reports_the_time_saved_per_page_and_in_total():
    with Site(pages=3) as site:
        site.list()
        lines, report, run = site.warm()
        saved = [line['saved_s'] for line in lines.values()]
        assert run.returncode == 0 and report['warmed'] == 4, report
        assert all(line['latency_after_s'] > 0 for line in lines.values()), lines
        assert abs(sum(second for second in saved if second) - report['saved_s']) < 0.001, (saved, report['saved_s'])
        slowest = [page['latency_before_s'] for page in report['slowest']]
        assert len(slowest) == 4 and slowest == sorted(slowest, reverse=True), slowest


def pages_come_from_a_file_and_lines_go_to_standard_output():
    with Site(pages=3) as site, tempfile.TemporaryDirectory() as folder:
        with open(f'{folder}/urls', 'w', encoding='utf-8') as file:
            file.write(f'# pages\n{site.url}/0\nnonsense:\n{site.url}/1\n')
        run = weir('warm', '--allow-private', '--pace', 'unlimited', '--urls-file', f'{folder}/urls', '--out', '-')
        assert run.returncode == 1 and 'line 3 is skipped' in run.stderr, run
        assert {json.loads(line)['url'] for line in run.stdout.splitlines()} == {f'{site.url}/0', f'{site.url}/1'}
        assert 'hit ratio' in run.stderr
        run = weir('warm', '--allow-private', '--pace', 'unlimited', '--json', f'{site.url}/2')
        assert run.returncode == 0 and json.loads(run.stdout)['pages'] == 1, run


def invalid_warm_arguments_are_refused_in_one_line():
    assert 'nothing to warm' in refusal('warm')
    assert 'scheme' in refusal('warm', 'ftp://example.org/')
    assert '--allow-private' in refusal('warm', 'http://127.0.0.1/')
    assert 's3cret' not in refusal('warm', 'https://me:s3cret@example.org/')
    assert '100' in refusal('warm', 'example.org', '--min-hit-ratio', '101')
    assert 'same file' in refusal('warm', 'example.org', '--out', 'x', '--report', 'x')
    assert '--report' in refusal('warm', 'example.org', '--out', '-', '--json')


def warm_never_overwrites_an_output_file():
    with Site(pages=1) as site, tempfile.TemporaryDirectory() as folder:
        words = ['warm', '--allow-private', '--pace', 'unlimited', '--quiet', '--out', f'{folder}/out', f'{site.url}/0']
        assert weir(*words).returncode == 0
        run = weir(*words)
        assert run.returncode == 1 and '--append' in run.stderr, run
        assert weir(*words, '--append').returncode == 0
        with open(f'{folder}/out', encoding='utf-8') as file:
            assert len(file.readlines()) == 2


def warm_headers_go_only_to_the_given_origin():
    """V10: also if robots.txt names a sitemap on another host, and for the pages listed there."""
    with Site(pages=1) as site, Site() as other:
        site.write('robots.txt', f'Sitemap: {other.url}/map.xml\nSitemap: {site.url}/map.xml\n')
        site.list(name='map.xml')
        other.write('map.xml', urlset([f'{site.url}/0', f'{other.url}/x']))
        _, report, run = site.warm('--header', 'X-Test: s3cret', site.url)
        assert run.returncode == 0 and report['entries_of_others'] == 1, (run, report)
        assert [test for *_, test in other.log()] == ['-', '-'], other.log()
        assert {test for *_, path, _, _, test in site.log() if path in ('/', '/0', '/map.xml')} == {'s3cret'}
        assert 's3cret' not in run.stdout + run.stderr + json.dumps(report)


def warm_headers_do_not_go_to_other_hosts_of_the_domain():
    """V10: a proxy stands in for the other hosts."""
    with Site(server='location ^~ /p/ { add_header X-Cache HIT; return 200 page; }') as site:
        site.write('sitemap.xml', urlset(['http://example.org/p/1', 'http://www.example.org/p/2',
                                          'http://other.example/p/3', 'http://example.org:8080/p/4']))
        lines, report, run = site.warm('--proxy', site.url, '--header', 'X-Test: s3cret', 'http://example.org')
        assert run.returncode == 0 and len(lines) == 3 and report['entries_of_others'] == 2, (run, report)
        asked = site.hosts_asked()
        assert {test for host, path, test in asked if host == 'example.org' and path != '/robots.txt'} == {'s3cret'}
        assert [test for host, path, test in asked if host == 'www.example.org'] == ['-', '-'], asked
        assert {host for host, *_ in asked} == {'example.org', 'www.example.org'}, asked


def interrupted_warm_ends_with_the_finished_pages():
    with Site(pages=30) as site, tempfile.TemporaryDirectory() as folder:
        site.list()
        process = subprocess.Popen([os.path.abspath(sys.argv[1]), 'warm', '--allow-private', '--interval', '300ms',
                                    '--out', '-', site.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        rest, words = process.communicate(timeout=30)
        assert process.returncode == 130 and first['url'] == f'{site.url}/', (process.returncode, first)
        assert 'pages not reached' in words and len(rest.splitlines()) < 25, words
        for line in rest.splitlines():
            json.loads(line)


def warm_stores_the_pace_of_hosts():
    with Site(pages=2) as site, tempfile.TemporaryDirectory() as folder:
        site.list()
        _, _, run = site.warm('--state', f'{folder}/state', site.url, unlimited=False)
        assert run.returncode == 0, run
        with open(f'{folder}/state', encoding='utf-8') as file:
            assert file.read().startswith('weir state 1\n127.0.0.1:')


if __name__ == '__main__':
    cases.main()
