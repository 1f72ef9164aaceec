# SPDX-License-Identifier: MIT
"""Two readers of WARC files: a small one of our own, and npm's warcio in the version of
package-lock.json.

Our reader reads every archive. If warcio is installed or can be fetched, it reads every archive,
too, and must find the same records.
"""
import base64
import fcntl
import glob
import hashlib
import json
import os
import shutil
import subprocess
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))


def _is_installed(folder, wanted):
    mark = os.path.join(folder, 'installed')
    if not os.path.exists(mark):
        return False
    with open(mark, encoding='utf-8') as file:
        return file.read() == wanted


def _install(folder, wanted):
    for name in ('package.json', 'package-lock.json'):
        shutil.copy(os.path.join(HERE, name), folder)
    run = subprocess.run(['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund'], cwd=folder, capture_output=True,
                         text=True, timeout=300)
    if run.returncode != 0:
        return f'npm could not install warcio: {run.stderr}'
    with open(os.path.join(folder, 'installed'), 'w', encoding='utf-8') as file:
        file.write(wanted)
    return None


def install(build):
    """Installs warcio once per build. Returns (its folder, None), or (None, the reason why it is
    missing)."""
    folder = os.path.join(build, 'tests', 'archive', 'reader')
    with open(os.path.join(HERE, 'package-lock.json'), encoding='utf-8') as file:
        wanted = file.read()
    if shutil.which('node') is None or shutil.which('npm') is None:
        return None, 'there is no node or no npm; tools/setup installs them'
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, 'lock'), 'w', encoding='ascii') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other tests may install it at the same time
        why = None if _is_installed(folder, wanted) else _install(folder, wanted)
    return (folder, None) if why is None else (None, why)


def _sha1(data):
    return 'sha1:' + base64.b32encode(hashlib.sha1(data).digest()).decode('ascii')


def _record(file, text):
    """Parses one member of the file, which must be exactly one record."""
    head, _, rest = text.partition(b'\r\n\r\n')
    version, *lines = head.decode('utf-8').split('\r\n')
    fields = dict(line.split(': ', 1) for line in lines)
    assert len(fields) == len(lines), lines
    length = int(fields['Content-Length'])
    block = rest[:length]
    first, end, body = block.partition(b'\r\n\r\n')
    return {'file': file, 'version': version, 'fields': fields, 'head': (first + end).decode('latin1'),
            'body': body.decode('latin1'), 'length_ok': len(block) == length and rest[length:] == b'\r\n\r\n',
            'block_ok': _sha1(block) == fields['WARC-Block-Digest'],
            'payload_ok': fields['WARC-Type'] != 'response' or _sha1(body) == fields['WARC-Payload-Digest']}


def read_file(file):
    """Yields the records of the file, read by our reader."""
    with open(file, 'rb') as opened:
        rest = opened.read()
    while rest:
        member = zlib.decompressobj(wbits=31)
        text = member.decompress(rest)
        assert member.eof, f'{file} ends within a record'
        rest = member.unused_data
        yield _record(file, text)


def read_by_warcio(folder, files):
    run = subprocess.run(['node', os.path.join(HERE, 'read.mjs'), folder, *files], capture_output=True, text=True,
                         timeout=120)
    assert run.returncode == 0 and run.stderr == '', run.stderr
    return [json.loads(line) for line in run.stdout.split('\n') if line]


def read(folder, prefix):
    """Returns all records of the archive, in the order of its files, after checking each. `folder`:
    warcio's, or None."""
    files = sorted(glob.glob(f'{glob.escape(prefix)}-*.warc.gz'))
    assert files, prefix
    records = [record for file in files for record in read_file(file)]
    if folder is not None:
        assert records == read_by_warcio(folder, files)
    for record in records:
        check(record)
    for file in files:  # every file starts with a warcinfo record that names it
        first = next(record for record in records if record['file'] == file)
        assert first['fields']['WARC-Type'] == 'warcinfo', first
        assert first['fields']['WARC-Filename'] == os.path.basename(file), first
        assert len([r for r in records if r['file'] == file and r['fields']['WARC-Type'] == 'warcinfo']) == 1
    assert len({record['fields']['WARC-Record-ID'] for record in records}) == len(records)
    return records


def check(record):
    """Checks the rules of the standard for a record."""
    fields = record['fields']
    assert record['version'] == 'WARC/1.1', record
    assert record['length_ok'] and record['block_ok'] and record['payload_ok'], record
    assert fields['WARC-Record-ID'].startswith('<urn:uuid:'), record
    assert fields['WARC-Date'].endswith('Z'), record
    if fields['WARC-Type'] == 'revisit':
        assert record['body'] == '' and fields['WARC-Profile'].startswith('http://netpreserve.org/warc/1.1/revisit/')


def exchanges(records):
    """Returns {URL: (response or revisit, request)}; no URL may occur twice."""
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
