#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir robots: which URLs a robots.txt allows. The corner cases are in the tests of the parser."""
import json
import os
import subprocess
import sys
import tempfile

import cases
from program import refusal, weir

RULES = b'''# a comment
User-agent: *
Disallow: /private
Allow: /private/open$
Crawl-delay: 1.5

User-agent: Weir
User-agent: other/2.0
Disallow: /w
Request-rate: 1/10m
Sitemap: https://example.org/s.xml
'''


def _with_file(text, *words):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'robots.txt')
        with open(path, 'wb') as file:
            file.write(text)
        return weir('robots', words[0], '--file', path, *words[1:])


def _check(text, *words):
    run = _with_file(text, 'check', *words)
    return run.returncode, [line.split('\t') for line in run.stdout.splitlines()]


def _show(text, agent):
    run = _with_file(text, 'show', '--agent', agent, '--json')
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def robots_check_prints_each_url_with_the_deciding_rule():
    status, lines = _check(RULES, '--agent', 'third', 'https://example.org/private/open', 'https://example.org/private/a?b',
                           'http://other.example/', '/private')
    assert status == 1
    assert lines == [
        ['allow', '4: Allow: /private/open$', 'https://example.org/private/open'],
        ['deny', '3: Disallow: /private', 'https://example.org/private/a?b'],
        ['allow', '-', 'http://other.example/'],
        ['deny', '3: Disallow: /private', '/private'],
    ]


def robots_check_exit_status_tells_if_all_urls_are_allowed():
    assert _check(RULES, '--agent', 'weir', 'http://x/private')[0] == 0
    assert _check(RULES, '--agent', 'weir', 'http://x/private', 'http://x/w')[0] == 1
    assert _check(RULES, '--agent', 'WEIR/3.0 (+http://x/)', 'http://x/w')[0] == 1
    assert _check(RULES, '--agent', 'third', 'http://x/w')[0] == 0
    assert _check(b'', '--agent', 'weir', 'http://x/w')[0] == 0


def encoded_urls_and_dot_segments_do_not_evade_robots_rules():
    for url in ('http://x/%70rivate', 'http://x/a/../private', 'http://x/a/%2e%2E/private', 'http://x/./pri%76ate/x',
                'http://x\\private', 'http://x/pri\tvate', 'HTTP://X:80/private#f'):
        status, lines = _check(RULES, '--agent', 'third', url)
        assert (status, lines[0][0]) == (1, 'deny'), url


def robots_check_exits_with_2_on_bad_usage():
    run = _with_file(RULES, 'check', '--agent', 'weir', 'http://x/w', 'ftp://x/')
    assert run.returncode == 2 and 'scheme' in run.stderr and run.stdout.startswith('deny\t')
    # without a path, a URL taken for a path might be allowed by mistake
    for url in ('example.org/private', 'private', ''):
        run = _with_file(RULES, 'check', '--agent', 'third', url)
        assert run.returncode == 2 and 'relative' in run.stderr and run.stdout == '', run
    assert '--agent is missing' in refusal('robots', 'check', '--file', 'x', 'http://x/')
    assert '--file is missing' in refusal('robots', 'check', '--agent', 'x', 'http://x/')
    assert 'cannot read /nonexistent/x: No such file' in refusal('robots', 'check', '--agent', 'x', '--file', '/nonexistent/x',
                                                                'http://x/')
    assert 'weir robots check' in refusal('robots', 'check', '--agent', 'x', '--file', 'x')
    assert 'cannot read' in refusal('robots', 'check', '--agent', 'x', '--file', '/', 'http://x/')


def robots_check_reads_the_file_from_standard_input():
    run = subprocess.run([sys.argv[1], 'robots', 'check', '--agent', 'third', '--file', '-', '/private'], input=RULES,
                         capture_output=True, timeout=20)
    assert run.returncode == 1 and run.stdout == b'deny\t3: Disallow: /private\t/private\n'


def robots_show_lists_the_rules_of_an_agent():
    assert _show(RULES, 'third') == {
        'crawl_delay': 1.5, 'request_rate': None, 'sitemaps': ['https://example.org/s.xml'],
        'rules': [{'line': 3, 'allow': False, 'path': '/private'}, {'line': 4, 'allow': True, 'path': '/private/open$'}]}
    assert _show(RULES, 'other') == {
        'crawl_delay': None, 'request_rate': {'requests': 1, 'seconds': 600}, 'sitemaps': ['https://example.org/s.xml'],
        'rules': [{'line': 9, 'allow': False, 'path': '/w'}]}
    assert _show(b'<html>', 'weir') == {'crawl_delay': None, 'request_rate': None, 'sitemaps': [], 'rules': []}


def robots_show_reports_that_there_are_no_rules():
    for text in (b'', b'<html>', b'User-agent: other\nDisallow: /\n', b'User-agent: *\nCrawl-delay: 2\n'):
        assert 'none: all is allowed' in _with_file(text, 'show', '--agent', 'weir').stdout
    assert 'all is allowed' not in _with_file(RULES, 'show', '--agent', 'third').stdout


def robots_show_prints_text_without_json():
    run = _with_file(RULES, 'show', '--agent', 'third')
    assert run.returncode == 0
    assert run.stdout == ('crawl_delay   1.5\nrequest_rate  -\nsitemap       https://example.org/s.xml\n'
                          '     3: Disallow: /private\n     4: Allow: /private/open$\n')


def robots_show_reports_a_shortened_crawl_delay():
    run = _with_file(b'User-agent: *\nCrawl-delay: 1e308\n', 'show', '--agent', 'weir', '--json')
    assert run.returncode == 0 and json.loads(run.stdout)['crawl_delay'] == 86400
    assert 'longer than a day' in run.stderr
    assert _with_file(b'User-agent: *\nCrawl-delay: nan\n', 'show', '--agent', 'weir').stderr == ''


def robots_show_reports_text_beyond_1_mib():
    run = _with_file(b'User-agent: *\nDisallow: /a\n' + b'#' * (1 << 20), 'show', '--agent', 'weir', '--json')
    assert len(json.loads(run.stdout)['rules']) == 1 and 'longer than 1 MiB' in run.stderr


# B15
def robots_show_escapes_control_characters_and_markup():
    text = 'User-agent: *\nDisallow: /a\x1b[31m\x9b<script>é\u202e"\\\nSitemap: \x1b]0;x\x07\n'.encode('utf-8') + b'Allow: /\xff\n'
    for words in (['show', '--agent', 'weir'], ['show', '--agent', 'weir', '--json'],
                  ['check', '--agent', 'weir', '/a%1b[31m%c2%9b%3Cscript%3E%C3%A9%E2%80%AE%22%5C', '/\x1b[0m\x07']):
        run = _with_file(text, *words)
        for c in run.stdout + run.stderr:
            assert c in '\n\t' or 32 <= ord(c) < 127, (words, c)
    rules = _show(text, 'weir')
    assert rules['rules'][0]['path'] == '/a\x1b[31m\x9b<script>é\u202e"\\'
    assert rules['rules'][1]['path'] == '/\ufffd' and rules['sitemaps'] == [']0;x']  # shortened
    run = _with_file(text, 'show', '--agent', 'weir', '--json')
    assert '<script>' not in run.stdout
    assert '\\x1b[31m' in _with_file(text, 'show', '--agent', 'weir').stdout


if __name__ == '__main__':
    cases.main()
