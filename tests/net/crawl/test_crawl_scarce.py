#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir crawl with limited address space (L2), against a real nginx. The first argument is the
program."""
import contextlib
import os
import sqlite3
import subprocess

from site_rig import PAGES, Folder, Tls, all_of, cases, page, site
from program import least_memory, limit_memory  # found by the path that site_rig sets

HOSTS = 4
ENOUGH_MB = 72
LARGE = 100_000  # bytes of a page: too many to be compressed on the loop that fetches
# limit without a new output line: weir ends a crawl after 30 s in which lack of memory stopped all
# progress
STILL_S = 60
MORE_MB = [2, 5, 7, 9, 11, 14, 20, 28, 40, ENOUGH_MB]  # beyond the memory that loading takes


def _is_sound(path):
    with contextlib.closing(sqlite3.connect(path)) as store:
        return store.execute('PRAGMA integrity_check').fetchone()[0] == 'ok'


def _has_job(path):
    with contextlib.closing(sqlite3.connect(path)) as store:
        tables = {name for name, in store.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        return 'jobs' in tables and store.execute('SELECT count(*) FROM jobs').fetchone()[0] > 0


def _count_lines(folder):
    return folder.read('crawl.jsonl').count('\n') if os.path.exists(folder.path('crawl.jsonl')) else 0


def _end_of(process, folder):
    """Returns the finished run. It may take long, but not STILL_S without a new line of output."""
    count = 0
    while True:
        try:
            out, errors = process.communicate(timeout=STILL_S)
            return subprocess.CompletedProcess(process.args, process.returncode, out, errors)
        except subprocess.TimeoutExpired:
            before, count = count, _count_lines(folder)
            if count == before:
                process.kill()
                raise


def _crawl(folder, megabytes, has_enough, words):
    """Crawls under the limit, and resumes without it."""
    run = _end_of(folder.begin(*words, preexec_fn=limit_memory(megabytes)), folder)
    assert run.returncode in (0, 1, 3), (megabytes, run)
    assert run.returncode == 0 or run.stderr.strip() != '', (megabytes, run)
    assert run.returncode == 0 or not has_enough, (megabytes, run)
    state = folder.path('weir.db')
    assert not os.path.exists(state) or _is_sound(state), megabytes
    if run.returncode == 0:
        return
    goes_on = os.path.exists(state) and _has_job(state)
    run = folder.crawl('--resume') if goes_on else folder.crawl(*words, '--append')
    assert run.returncode == 0, (megabytes, run)


def little_memory_slows_or_ends_a_tls_crawl_that_can_be_resumed():
    with Tls() as tls, site(http=tls.http):
        urls = {f'{url}/{path}' for url in tls.urls[:HOSTS]
                for path in ['', *(f'p{number}.html' for number in range(PAGES))]}
        least = least_memory()
        for more in MORE_MB:
            megabytes = least + more
            with Folder() as folder:
                folder.write('seeds', ''.join(f'{url}/\n' for url in tls.urls[:HOSTS]))
                _crawl(folder, megabytes, more == ENOUGH_MB,
                       ['--pace', 'unlimited', '--ca-file', tls.authority, '--seeds-file', 'seeds'])
                lines = folder.by_url()
                assert set(lines) == urls, (megabytes, len(lines))
                assert {line['status'] for line in lines.values()} == {200}, megabytes


def little_memory_never_ends_a_crawl_with_archive_silently():
    with site(**{f'p{number}.html': page(number) + 'x' * LARGE for number in range(PAGES)}) as nginx:
        least = least_memory()
        for more in MORE_MB[2:]:
            with Folder() as folder:
                _crawl(folder, least + more, more == ENOUGH_MB, ['--pace', 'unlimited', '--warc', 'kept', nginx.url])
                assert set(folder.by_url()) == all_of(nginx), more


if __name__ == '__main__':
    cases.main()
