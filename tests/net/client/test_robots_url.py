#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir robots --url: the robots.txt of a site, fetched from a real nginx. The first argument is the
program."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'cli'))

import cases  # noqa: E402
from nginx import Nginx  # noqa: E402
from program import refusal, weir  # noqa: E402

RULES = 'User-agent: weir\nDisallow: /private\nCrawl-delay: 2\nSitemap: http://example.org/s.xml\n'


def _check(url, *paths):
    return weir('robots', 'check', '--agent', 'weir', '--allow-private', '--url', url, *paths)


def robots_check_fetches_the_file_of_the_site():
    with Nginx(files={'robots.txt': RULES}) as nginx:
        secret = nginx.url.replace('//', '//user:s3cret@')
        run = _check(f'{secret}/some/page', '/private/x', f'{nginx.url}/open')
        assert run.returncode == 1 and run.stderr == '', run
        assert run.stdout == f'deny\t2: Disallow: /private\t/private/x\nallow\t-\t{nginx.url}/open\n', run
        assert [(path, agent) for _, _, path, _, agent, _ in nginx.log()] == [('/robots.txt', 'weir')]
        assert _check(nginx.url, '/open').returncode == 0
        run = weir('robots', 'show', '--agent', 'weir', '--allow-private', '--json', '--url', nginx.url)
        shown = json.loads(run.stdout)
        assert shown['crawl_delay'] == 2 and shown['sitemaps'] == ['http://example.org/s.xml'], shown
        assert [rule['path'] for rule in shown['rules']] == ['/private'], shown


def robots_redirects_are_followed_up_to_a_limit():
    server = 'location = /robots.txt { return 301 /1; } location = /1 { return 302 /rules; }'
    with Nginx(server, files={'rules': RULES}) as nginx:
        assert _check(nginx.url, '/private').returncode == 1
    with Nginx('location = /robots.txt { return 301 /robots.txt?again; }') as nginx:
        run = _check(nginx.url, '/private')
        assert run.returncode == 0 and run.stdout == 'allow\t-\t/private\n', run
        assert len(nginx.log()) == 6, nginx.log()


def missing_robots_allows_all_and_failing_robots_is_an_error():
    with Nginx() as nginx:
        run = _check(nginx.url, '/private')
        assert run.returncode == 0 and run.stdout == 'allow\t-\t/private\n', run
    with Nginx('location = /robots.txt { return 503; }') as nginx:
        run = _check(nginx.url, '/private')
        assert run.returncode == 2 and run.stdout == '' and '503' in run.stderr, run
    run = _check(nginx.url, '/private')  # nginx has stopped
    assert run.returncode == 2 and run.stdout == '' and 'no connection' in run.stderr, run
    run = weir('robots', 'show', '--agent', 'weir', '--allow-private', '--url', nginx.url)
    assert run.returncode == 1 and run.stdout == '' and 'no connection' in run.stderr, run


def private_addresses_are_refused_unless_allowed():
    with Nginx(files={'robots.txt': RULES}) as nginx:
        run = weir('robots', 'check', '--agent', 'weir', '--url', nginx.url, '/private')
        assert run.returncode == 2 and run.stdout == '' and '; --allow-private allows it' in run.stderr, run
        assert nginx.log() == []


def robots_check_reads_from_a_file_or_a_url_not_both():
    assert '--agent' in refusal('robots', 'check', '--url', 'http://example.org/', '/a')
    assert '--file' in refusal('robots', 'check', '--agent', 'weir', '/a')
    assert 'one of them' in refusal('robots', 'show', '--agent', 'weir', '--file', '-', '--url', 'http://example.org/')
    assert '--url' in refusal('robots', 'check', '--agent', 'weir', '--url', 'gopher://example.org/', '/a')


if __name__ == '__main__':
    cases.main()
