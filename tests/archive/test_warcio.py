#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An independent reader finds the archives of weir crawl valid: npm's warcio, which the first run
fetches. Without node or a network to fetch it, the test is skipped; in CI it fails.
test_archive.py tests the content of archives in any case. Arguments: the program, the build
folder."""
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'cli')]

import cases  # noqa: E402
import reader  # noqa: E402
from program import weir  # noqa: E402
from small_site import Site  # noqa: E402

SKIP = 77
HTML = {'Content-Type': 'text/html'}


def independent_reader_finds_the_same_archive_records():
    links = b'<a href=/same>a</a><a href=/bytes>b</a><a href=/gone>c</a>' + b'as long as it needs to be ' * 40
    pages = {'/': (200, HTML, links), '/same': (200, HTML, links), '/gone': (410, HTML, b''),
             '/bytes': (200, {'Content-Type': 'image/png'}, bytes(range(256)) * 40)}
    with Site(pages) as site, tempfile.TemporaryDirectory() as folder:
        run = weir('crawl', '--allow-private', '--quiet', '--pace', 'unlimited', '--all-types', '--warc', 'a', '--warc-size', '16k',
                   site.url('/'), cwd=folder)
        assert run.returncode in (0, 1), run
        records = reader.read(_reader, f'{folder}/a')
        kinds = {record['fields']['WARC-Type'] for record in records}
        assert kinds == {'warcinfo', 'request', 'response', 'revisit'}, kinds


if __name__ == '__main__':
    if sys.argv[1:] != ['--list']:
        _reader, _why = reader.install(sys.argv.pop())
        if _reader is None:
            print('skipped:', _why)
            sys.exit(1 if cases.is_ci() else SKIP)
    cases.main()
