#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir fetch with limited address space (L2), against a real nginx. The first argument is the
program."""
import collections
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'cli'))

import cases  # noqa: E402
from nginx import Nginx, Tls  # noqa: E402
from program import least, least_memory, limit_memory  # noqa: E402

FILES = {f'p{number}.html': f'{number} ' * 4000 for number in range(10)}
MORE_MB = 12  # beyond the need of a single URL: with this much, every URL is answered


def _limited(megabytes, *words):
    """Returns (the lines, the run)."""
    run = subprocess.run([os.path.abspath(sys.argv[1]), 'fetch', '--allow-private', '--ignore-robots', '--pace',
                          'unlimited', '--concurrency', '256', *words],
                         stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600,
                         preexec_fn=limit_memory(megabytes))
    return [json.loads(line) for line in run.stdout.splitlines()], run


def _check(has_enough, urls, lines, run):
    """The run works or reports that it cannot. It blames no host, reports no URL twice and does not
    crash."""
    assert run.returncode in ((0,) if has_enough else (0, 1, 127)), run  # 127: the program could not be loaded
    assert {line['failure'] for line in lines} <= {None, 'internal'}, run
    told = collections.Counter(line['url'] for line in lines)
    assert set(told) <= set(urls) and max(told.values(), default=1) == 1, told
    if run.returncode == 0:
        assert len(lines) == len(urls) and {line['status'] for line in lines} == {200}, run
    else:
        assert run.stderr.strip() != '', run


def _sweep(urls, *words):
    """Runs with limits from far too little memory to enough."""
    fewest = least(lambda megabytes: _limited(megabytes, *words, urls[0])[1].returncode == 0, least_memory())
    for more in (-6, -2, 0, 4, MORE_MB, 2 * MORE_MB):
        print(f'{fewest + more} MB', flush=True)
        _check(more >= MORE_MB, urls, *_limited(fewest + more, *words, *urls))


def little_memory_only_slows_fetch_over_tls():
    with Tls() as tls, Nginx(http=tls.http, files=FILES):
        _sweep([f'{url}/p{number}.html' for url in tls.urls for number in range(4)], '--ca-file', tls.authority)


def little_memory_only_slows_fetch_through_a_proxy():
    with Nginx('location / { proxy_pass http://127.0.0.1:$arg_port; }', files=FILES) as proxy:
        with Nginx(files=FILES) as nginx:
            urls = [f'{nginx.url}/p{number % 10}.html?port={nginx.port}&n={number}' for number in range(256)]
            _sweep(urls, '--proxy', proxy.url)


def url_list_larger_than_memory_is_read_while_fetching():
    urls = 60000
    with Tls() as tls, Nginx(http=tls.http, files=FILES) as nginx:
        with open(f'{tls.folder}/list', 'w', encoding='utf-8') as file:
            file.writelines(f'{tls.urls[number % 16]}/p1.html?{number}\n' if number < 100 else
                            f'{nginx.url}/p1.html?{number}\n' for number in range(urls))
        lines, run = _limited(least_memory() + 24, '--ca-file', tls.authority, '--urls-file', f'{tls.folder}/list')
        assert run.returncode == 0 and len(lines) == urls, (run.returncode, len(lines), run.stderr)


if __name__ == '__main__':
    cases.main()
