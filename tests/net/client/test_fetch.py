#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir fetch as users run it, against a real nginx. The first argument is the program."""
import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'cli'))

import cases  # noqa: E402
from nginx import PATIENCE_S, SLACK_S, Door, Nginx  # noqa: E402
from program import refusal, weir  # noqa: E402

PAGES = {f'{name}.html': name * 1000 for name in 'abcdef'}


def _fetch(*words, **more):
    """Returns ({url: its line}, the run)."""
    run = weir('fetch', '--allow-private', '--quiet', *words, **more)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    return {line['url']: line for line in lines}, run


def every_url_has_a_line_with_its_result():
    files = {**PAGES, 'robots.txt': 'User-agent: *\nDisallow: /secret\n'}
    with Nginx('location /old { return 302 /b.html; }', files=files) as nginx:
        words = [f'{nginx.url}/{path}' for path in ('a.html', 'missing', 'old', 'secret/x')] + ['ftp://example.org/']
        lines, run = _fetch('--pace', 'unlimited', *words)
        assert run.returncode == 1 and run.stderr == '', run
        page = lines[f'{nginx.url}/a.html']
        assert page['status'] == 200 and page['bytes'] == 1000 and page['failure'] is None, page
        assert page['attempts'] == 1 and page['hops'] == 0 and not page['truncated'], page
        assert page['final_url'] == f'{nginx.url}/a.html' and page['address'] == '127.0.0.1', page
        assert 0 < page['latency_s'] <= page['total_s'], page
        assert lines[f'{nginx.url}/missing']['status'] == 404
        moved = lines[f'{nginx.url}/old']
        assert moved['status'] == 200 and moved['hops'] == 1 and moved['final_url'] == f'{nginx.url}/b.html', moved
        secret = lines[f'{nginx.url}/secret/x']
        assert secret['status'] is None and secret['failure'] == 'robots' and secret['robots_line'] == 2, secret
        bad = lines['ftp://example.org/']
        assert bad['status'] is None and bad['failure'] == 'url' and 'scheme' in bad['detail'], bad
        assert len(lines) == 5
        assert not any(path.startswith('/secret') for _, _, path, *_ in nginx.log())


def only_statuses_below_400_make_a_successful_fetch():
    with Nginx(files=PAGES) as nginx:
        lines, run = _fetch('--pace', 'unlimited', *(f'{nginx.url}/{path}' for path in PAGES))
        assert run.returncode == 0 and len(lines) == len(PAGES), run


def crawl_delay_spaces_the_requests_to_nginx():
    files = {**PAGES, 'robots.txt': 'User-agent: *\nCrawl-delay: 1\n'}
    with Nginx(files=files) as nginx, Door(nginx) as door:
        _, run = _fetch(*(f'{door.url}/{path}' for path in list(PAGES)[:3]))
        assert run.returncode == 0, run
        gaps = door.gaps()
        assert len(gaps) == 3 and min(gaps) >= 1 - SLACK_S, gaps


def default_pace_of_fetch_begins_at_one_a_second_and_never_exceeds_eight():
    """R1, U8: without options weir is never fast."""
    with Nginx(files={f'{i}': 'page' for i in range(30)}) as nginx, Door(nginx) as door:
        # on a busy machine nginx responds late, and weir slows down
        _, run = _fetch(*(f'{door.url}/{i}' for i in range(30)), timeout=180)
        assert run.returncode == 0, run
        gaps = door.gaps()
        assert len(gaps) == 30 and gaps[0] >= 1 - SLACK_S and min(gaps) >= 1 / 8 - SLACK_S, gaps
        assert sum(gaps[1:]) >= 29 / 8 - SLACK_S, gaps


def nothing_arrives_at_nginx_while_retry_after_holds():
    http = 'limit_req_zone $server_port zone=one:1m rate=60r/m; limit_req_status 429;'
    server = ('location /x { limit_req zone=one; error_page 429 = @away; }'
              'location @away { add_header Retry-After 1 always; return 429; }')
    with Nginx(server, http, files={f'x/{i}': 'page' for i in range(4)}) as nginx, Door(nginx) as door:
        lines, run = _fetch('--pace', 'unlimited', '--per-host', '1', '--ignore-robots',
                            *(f'{door.url}/x/{i}' for i in range(4)))
        assert run.returncode == 0, run
        waited_s = [gap_s for gap_s, (_, _, _, status, *_) in zip(door.gaps(), nginx.log()) if status == 429]
        assert waited_s and min(waited_s) >= 1, waited_s
        assert any(line['attempts'] > 1 and line['waited_for'] == 'retry_after' for line in lines.values()), lines


def urls_come_from_a_file_or_standard_input_and_lines_go_to_a_file():
    with Nginx(files=PAGES) as nginx, tempfile.TemporaryDirectory() as folder:
        text = f'# a comment\n\n  {nginx.url}/a.html  \r\n{nginx.url}/b.html\n{nginx.url}/c.html'
        with open(f'{folder}/urls', 'w', encoding='utf-8') as file:
            file.write(text)
        run = weir('fetch', '--allow-private', '--pace', 'unlimited', '--urls-file', f'{folder}/urls', '--out',
                   f'{folder}/lines', f'{nginx.url}/d.html')
        assert run.returncode == 0 and run.stdout == '' and '4 of 4 answered' in run.stderr, run
        with open(f'{folder}/lines', encoding='utf-8') as file:
            assert {json.loads(line)['status'] for line in file} == {200}
        run = subprocess.run([sys.argv[1], 'fetch', '--allow-private', '--pace', 'unlimited', '--urls-file', '-'],
                             input=text, capture_output=True, text=True, timeout=PATIENCE_S)
        assert run.returncode == 0 and len(run.stdout.splitlines()) == 3, run


def invalid_lines_of_a_url_list_are_reported_by_number():
    with Nginx(files=PAGES) as nginx, tempfile.TemporaryDirectory() as folder:
        with open(f'{folder}/urls', 'w', encoding='utf-8') as file:
            file.write(f'{nginx.url}/a.html\n# a comment\n\nnonsense\n{"x" * 100000}\n{nginx.url}/b.html\n')
        lines, run = _fetch('--pace', 'unlimited', '--urls-file', f'{folder}/urls')
        assert run.returncode == 1 and len(lines) == 4, run
        assert sorted(line['line'] for line in lines.values() if line['failure'] == 'url') == [4, 5], lines
        assert lines[f'{nginx.url}/b.html']['status'] == 200, lines


def fetch_never_overwrites_an_output_file():
    with Nginx(files=PAGES) as nginx, tempfile.TemporaryDirectory() as folder:
        name = f'{folder}/lines'
        words = ['fetch', '--allow-private', '--pace', 'unlimited', '--quiet', '--out', name, f'{nginx.url}/a.html']
        open(name, 'w', encoding='utf-8').close()  # an empty file, as mktemp leaves it
        assert weir(*words).returncode == 0
        run = weir(*words)
        assert run.returncode == 1 and run.stderr.count('\n') == 1, run
        assert name in run.stderr and '--append' in run.stderr, run
        with open(name, encoding='utf-8') as file:
            first = file.read()
        assert len(first.splitlines()) == 1
        assert weir(*words, '--append').returncode == 0
        with open(name, encoding='utf-8') as file:
            both = file.read()
        assert both.startswith(first) and len(both.splitlines()) == 2, both
        assert weir(*words[:5], '--out', '/dev/null', f'{nginx.url}/a.html').returncode == 0
        assert [path for _, _, path, *_ in nginx.log()].count('/a.html') == 3


def missing_url_list_is_reported_in_one_line():
    run = weir('fetch', '--urls-file', '/nowhere/urls', 'http://127.0.0.1:9/')
    assert run.returncode == 1 and run.stdout == '' and run.stderr.count('\n') == 1, run
    assert '/nowhere/urls' in run.stderr, run


def url_given_twice_is_fetched_twice():
    with Nginx(files=PAGES) as nginx:
        run = weir('fetch', '--allow-private', '--pace', 'unlimited', f'{nginx.url}/a.html', f'{nginx.url}/a.html')
        assert run.returncode == 0 and len(run.stdout.splitlines()) == 2 and '2 of 2' in run.stderr, run
        assert [path for _, _, path, *_ in nginx.log()].count('/a.html') == 2


def summary_separates_responses_errors_and_named_failures():
    with Nginx(files={**PAGES, 'robots.txt': 'User-agent: *\nDisallow: /secret\n'}) as nginx:
        run = weir('fetch', '--allow-private', '--pace', 'unlimited', f'{nginx.url}/a.html', f'{nginx.url}/missing',
                   f'{nginx.url}/secret', 'nonsense')
        assert run.returncode == 1 and run.stderr.startswith('2 of 4 answered in '), run
        assert run.stderr.endswith(' s, 1 with status 400 or more; not answered: 1 robots, 1 not a URL\n'), run
        run = weir('fetch', '--allow-private', '--pace', 'unlimited', f'{nginx.url}/a.html')
        assert run.stderr.startswith('1 of 1 answered in ') and run.stderr.endswith(' s\n'), run


def _read_screen(screen):
    parts = []
    try:
        while part := os.read(screen, 65536):
            parts.append(part)
    except OSError:  # on Linux, a closed terminal reads as an error
        pass
    os.close(screen)
    return b''.join(parts).decode()


def progress_and_lines_on_one_terminal_do_not_mix():
    screen, terminal = pty.openpty()
    with Nginx(files=PAGES) as nginx:
        run = subprocess.run([sys.argv[1], 'fetch', '--allow-private', f'{nginx.url}/a.html', f'{nginx.url}/b.html'],
                             stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, timeout=PATIENCE_S)
    os.close(terminal)
    shown = _read_screen(screen)
    assert run.returncode == 0 and ' waiting, ' in shown and '2 of 2 answered' in shown, shown
    for before in shown.split('{"url"')[:-1]:
        assert before.endswith(('\r\033[K', '\n')), shown


def agent_and_headers_are_sent_to_the_hosts_given():
    with Nginx('location /old { return 302 http://localhost:$server_port/a.html; }', files=PAGES) as nginx:
        _, run = _fetch('--pace', 'unlimited', '--agent', 'tester/1.0', '--header', 'X-Test: yes', f'{nginx.url}/old')
        assert run.returncode == 0, run
        log = [(path, agent, test) for _, _, path, _, agent, test in nginx.log() if path != '/robots.txt']
        assert log == [('/old', 'tester/1.0', 'yes'), ('/a.html', 'tester/1.0', '-')], log


def fetch_lines_and_errors_show_no_password():
    with Nginx(files=PAGES) as nginx:
        url = nginx.url.replace('//', '//user:s3cret@')
        run = weir('fetch', '--allow-private', f'{url}/a.html', url.replace('http:', 'ftp:'), 'http://user:s3cret@[/')
        assert 's3cret' not in run.stdout + run.stderr, run
        lines = [json.loads(line) for line in run.stdout.splitlines()]
        assert {line['url'] for line in lines} == {f'{nginx.url}/a.html', nginx.url.replace('http:', 'ftp:'), 'http://[/'}
    for words in (('--proxy', 'socks5://user:s3cret@x'), ('--header', 'Authorization: s3cret\n'), ('--header', 'X s3cret')):
        assert 's3cret' not in refusal('fetch', *words, 'http://example.org/')


def private_addresses_are_refused_unless_allowed():
    with Nginx(files=PAGES) as nginx:
        run = weir('fetch', '--quiet', f'{nginx.url}/a.html')
        assert run.returncode == 1 and json.loads(run.stdout)['failure'] == 'guard' and run.stderr == '', run
        run = weir('fetch', f'{nginx.url}/a.html')
        assert run.stderr.endswith('addresses are refused; --allow-private allows them\n'), run
        assert nginx.log() == []


def interrupted_fetch_ends_with_the_finished_lines():
    files = {**PAGES, 'robots.txt': 'User-agent: *\nCrawl-delay: 30\n'}
    with Nginx(files=files) as slow, Nginx(files=PAGES) as quick:
        process = subprocess.Popen([sys.argv[1], 'fetch', '--allow-private', '--pace', 'unlimited',
                                    f'{slow.url}/a.html', f'{slow.url}/b.html', f'{quick.url}/a.html'],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = json.loads(process.stdout.readline())
        assert first['url'] == f'{quick.url}/a.html' and first['status'] == 200, first
        process.send_signal(signal.SIGINT)
        rest, complaints = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 130 and rest == '', (process.returncode, rest)
        assert '1 of 3 answered' in complaints, complaints
        assert not {'/a.html', '/b.html'} <= {path for _, _, path, *_ in slow.log()}, 'fetch waited for the slow host'


def _await_full(pipe):
    """Waits until the pipe is full: until its content no longer grows."""
    held, before = 0, -1
    while held == 0 or held != before:
        time.sleep(0.5)
        before, held = held, int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def second_interrupt_ends_fetch_even_if_its_output_is_not_read():
    with Nginx(files=PAGES, logs=False) as nginx:
        process = subprocess.Popen([sys.argv[1], 'fetch', '--allow-private', '--pace', 'unlimited', '--ignore-robots',
                                    '--quiet'] + [f'{nginx.url}/a.html?{i}' for i in range(1000)],
                                   stdout=subprocess.PIPE)
        with process.stdout:
            _await_full(process.stdout)
            process.send_signal(signal.SIGTERM)
            time.sleep(1)
            assert process.poll() is None, 'fetch waits for its reader'
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=PATIENCE_S) == -signal.SIGTERM


def fetch_notices_that_its_reader_is_gone():
    with Nginx(files=PAGES) as nginx:
        process = subprocess.Popen([sys.argv[1], 'fetch', '--allow-private', '--quiet', f'{nginx.url}/a.html'],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdout.close()
        assert process.wait(timeout=PATIENCE_S) == 1
        assert process.stderr.read() == 'weir fetch: cannot write to standard output: Broken pipe\n'
        process.stderr.close()


def fetch_reports_lines_lost_to_a_full_disk():
    with Nginx(files=PAGES) as nginx:
        run = weir('fetch', '--allow-private', '--quiet', '--out', '/dev/full', f'{nginx.url}/a.html')
        assert run.returncode == 1 and run.stderr.startswith('weir fetch: cannot write all lines: No space'), run


def help_shows_sizes_as_options_take_them():
    assert '(default 16M)' in weir('fetch', '--help', 'all').stdout


def invalid_fetch_arguments_are_refused():
    assert 'no URL' in refusal('fetch')
    assert 'header' in refusal('fetch', '--header', 'X', 'http://example.org/')
    assert 'agent' in refusal('fetch', '--agent', 'a\nb', 'http://example.org/')
    assert '--max-rate' in refusal('fetch', '--max-rate', 'fast', 'http://example.org/')
    assert '--pace' in refusal('fetch', '--pace', 'quick', 'http://example.org/')
    assert 'proxy' in refusal('fetch', '--proxy', 'gopher://x', 'http://example.org/')
    run = weir('fetch', '--urls-file', '/nonexistent/urls')
    assert run.returncode == 1 and 'cannot read /nonexistent/urls' in run.stderr, run


if __name__ == '__main__':
    cases.main()
