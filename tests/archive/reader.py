# SPDX-License-Identifier: MIT
"""Somebody else's reader of WARC files: npm's warcio, of the version in package-lock.json."""
import glob
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SKIP = 77


def install(build):
    """The folder that warcio is in: made once for each build. Without node, or without a network to get it from, the
    tests are skipped."""
    folder = os.path.join(build, 'tests', 'archive', 'reader')
    lock = os.path.join(HERE, 'package-lock.json')
    mark = os.path.join(folder, 'installed')
    with open(lock, encoding='utf-8') as file:
        wanted = file.read()
    if os.path.exists(mark):
        with open(mark, encoding='utf-8') as file:
            if file.read() == wanted:
                return folder
    if shutil.which('node') is None or shutil.which('npm') is None:
        print('skipped: there is no node or no npm; tools/setup installs them')
        sys.exit(SKIP)
    os.makedirs(folder, exist_ok=True)
    for name in ('package.json', 'package-lock.json'):
        shutil.copy(os.path.join(HERE, name), folder)
    run = subprocess.run(['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund'], cwd=folder, capture_output=True,
                         text=True, timeout=300)
    if run.returncode != 0:
        print('skipped: npm could not install warcio:', run.stderr)
        sys.exit(SKIP)
    with open(mark, 'w', encoding='utf-8') as file:
        file.write(wanted)
    return folder


def read(folder, prefix):
    """All records of the archive, in the order of its files; each was found valid."""
    files = sorted(glob.glob(f'{glob.escape(prefix)}-*.warc.gz'))
    assert files, prefix
    run = subprocess.run(['node', os.path.join(HERE, 'read.mjs'), folder, *files], capture_output=True, text=True,
                         timeout=120)
    assert run.returncode == 0 and run.stderr == '', run.stderr
    records = [json.loads(line) for line in run.stdout.split('\n') if line]
    for record in records:
        check(record)
    for file in files:  # none is empty, and each says whose it is
        first = next(record for record in records if record['file'] == file)
        assert first['fields']['WARC-Type'] == 'warcinfo', first
        assert first['fields']['WARC-Filename'] == os.path.basename(file), first
        assert len([r for r in records if r['file'] == file and r['fields']['WARC-Type'] == 'warcinfo']) == 1
    assert len({record['fields']['WARC-Record-ID'] for record in records}) == len(records)
    return records


def check(record):
    """What the standard asks of every record."""
    fields = record['fields']
    assert record['version'] == 'WARC/1.1', record
    assert record['length_ok'] and record['block_ok'] and record['payload_ok'], record
    assert fields['WARC-Record-ID'].startswith('<urn:uuid:'), record
    assert fields['WARC-Date'].endswith('Z'), record
    if fields['WARC-Type'] == 'revisit':
        assert record['body'] == '' and fields['WARC-Profile'].startswith('http://netpreserve.org/warc/1.1/revisit/')


def exchanges(records):
    """{URL: (response or revisit, request)}; each URL once."""
    pairs = {}
    answers = [r for r in records if r['fields']['WARC-Type'] in ('response', 'revisit')]
    requests = {r['fields']['WARC-Concurrent-To']: r for r in records if r['fields']['WARC-Type'] == 'request'}
    for answer in answers:
        url = answer['fields']['WARC-Target-URI']
        assert url not in pairs, f'{url} is in the archive twice'
        request = requests.pop(answer['fields']['WARC-Record-ID'])
        assert request['fields']['WARC-Target-URI'] == url
        pairs[url] = (answer, request)
    assert not requests, requests
    return pairs
