#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir crawl --warc and --save-bodies. Our own reader reads the archives and, if it is available,
npm's warcio (reader.py). Arguments: the program, the build folder."""
import contextlib
import gzip
import hashlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'cli')]

import cases  # noqa: E402
import reader  # noqa: E402
from program import weir  # noqa: E402
from small_site import Site  # noqa: E402

HTML = {'Content-Type': 'text/html'}
TEXT = b'All that is gold does not glitter. ' * 40
WORDS = ['--allow-private', '--quiet', '--pace', 'unlimited']


def _links(*paths):
    return ''.join(f'<a href="{path}">x</a>' for path in paths).encode()


def _crawl(folder, *words, status=(0, 1)):
    """Runs a crawl and returns {url: its line}."""
    run = weir('crawl', *WORDS, *words, cwd=folder)
    assert run.returncode in status, run
    return _lines(folder)


def _lines(folder):
    with open(f'{folder}/crawl.jsonl', encoding='utf-8') as file:
        lines = [json.loads(line) for line in file]
    by_url = {line['url']: line for line in lines}
    assert len(by_url) == len(lines)
    return by_url


def _records(folder, name='a'):
    return reader.read(_reader, f'{folder}/{name}')


def _field(record, name):
    for line in record['head'].split('\r\n')[1:]:
        if line.lower().startswith(name.lower() + ':'):
            return line.split(':', 1)[1].strip()
    return None


def every_response_is_in_the_archive_once_and_valid():
    packed = gzip.compress(TEXT)
    pages = {'/': (200, HTML, _links('/packed', '/chunks', '/gone', '/moved', '/bytes', '/empty')),
             '/packed': (200, {'Content-Type': 'text/plain', 'Content-Encoding': 'gzip'}, packed),
             '/chunks': (200, {'Content-Type': 'text/plain', 'Transfer-Encoding': 'chunked'}, TEXT),
             '/gone': (410, HTML, b'gone, and a long story why'),
             '/moved': (301, {'Location': '/bytes'}, b'over there'),
             '/bytes': (200, {'Content-Type': 'image/png'}, bytes(range(256)) * 40),
             '/empty': (200, {'Content-Type': 'text/plain'}, b'')}
    with Site(pages) as site, tempfile.TemporaryDirectory() as folder:
        lines = _crawl(folder, '--warc', 'a', '--all-types', site.url('/'))
        pairs = reader.exchanges(_records(folder))
        assert set(pairs) == set(lines) == {site.url(path) for path in pages}, (set(pairs), set(lines))
        for path, (status, fields, body) in pages.items():
            answer, request = pairs[site.url(path)]
            body = TEXT if fields.get('Content-Encoding') == 'gzip' else body
            if answer['fields']['WARC-Type'] == 'response':
                assert answer['body'].encode('latin1') == body, answer
            assert answer['head'].startswith(f'HTTP/1.1 {status} '), answer
            assert _field(answer, 'Content-Encoding') is None and _field(answer, 'Transfer-Encoding') is None, answer
            assert _field(answer, 'Content-Length') == str(len(body)), answer
            assert answer['fields']['WARC-IP-Address'] == '127.0.0.1'
            assert answer['fields']['Content-Type'] == 'application/http;msgtype=response'
            assert request['head'].startswith(f'GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n'), request
            assert 'WARC-Truncated' not in answer['fields']
        assert _field(pairs[site.url('/packed')][0], 'X-Archive-Orig-Content-Encoding') == 'gzip'
        assert _field(pairs[site.url('/packed')][0], 'X-Archive-Orig-Content-Length') == str(len(packed))
        assert _field(pairs[site.url('/chunks')][0], 'X-Archive-Orig-Transfer-Encoding') == 'chunked'


def same_payload_is_a_revisit_of_the_first():
    pages = {'/': (200, HTML, _links('/1')), '/1': (200, HTML, TEXT + _links('/2')),
             '/2': (200, HTML, TEXT + _links('/2'))}
    with Site(pages) as site, tempfile.TemporaryDirectory() as folder:
        _crawl(folder, '--warc', 'a.warc.gz', site.url('/'))
        records = _records(folder)
        pairs = reader.exchanges(records)
        first, second = pairs[site.url('/1')][0], pairs[site.url('/2')][0]
        assert first['fields']['WARC-Type'] == 'response' and second['fields']['WARC-Type'] == 'revisit', second
        assert second['fields']['WARC-Refers-To-Target-URI'] == site.url('/1')
        assert second['fields']['WARC-Refers-To-Date'] == first['fields']['WARC-Date']
        assert second['fields']['WARC-Payload-Digest'] == first['fields']['WARC-Payload-Digest']
        assert second['fields']['WARC-Profile'].endswith('/identical-payload-digest')
        assert second['head'].startswith('HTTP/1.1 200 '), second
        assert records.index(first) < records.index(second)


def secrets_of_requests_are_not_in_the_archive():
    """V10: for both ways to send a request: libcurl handles requests through a proxy."""
    def answer(_path, fields):
        return 200 if fields.get('Authorization') == 'Bearer s3cret' else 403, HTML, b'seen'
    for proxied in (False, True):
        with Site(answer) as site, tempfile.TemporaryDirectory() as folder:
            proxy = ['--proxy', f'http://me:s3cret@127.0.0.1:{site.port}'] if proxied else []
            lines = _crawl(folder, '--warc', 'a', '--save-bodies', 'b', '--header', 'Authorization: Bearer s3cret',
                           '--header', 'Cookie: id=s3cret', '--header', 'X-Key: s3cret', '--ignore-robots', *proxy,
                           site.url('/'))
            assert lines[site.url('/')]['status'] == 200, lines
            if proxied:
                assert 'Proxy-Authorization' in site.asked[0][1], site.asked
            records = _records(folder)
            (reply, request), = reader.exchanges(records).values()
            assert ('WARC-IP-Address' in reply['fields']) != proxied, reply
            assert _field(request, 'User-Agent').startswith('weir/'), request
            for word in ('s3cret', 'Authorization', 'Cookie', 'X-Key'):
                assert word not in json.dumps(records), (word, records)
            with open(f'{folder}/weir.db', 'rb') as file:
                assert b's3cret' not in file.read()


def archive_continues_in_another_file_when_one_is_full():
    count = 60
    pages = {f'/{n}': (200, HTML, _links(f'/{2 * n + 1}', f'/{2 * n + 2}') + random.Random(n).randbytes(2000))
             for n in range(count)}
    with Site(pages) as site, tempfile.TemporaryDirectory() as folder:
        _crawl(folder, '--warc', 'a', '--warc-size', '16k', site.url('/0'))
        records = _records(folder)
        pairs = reader.exchanges(records)
        assert {site.url(path) for path in pages} <= set(pairs)
        files = sorted({record['file'] for record in records})
        assert len(files) > 5 and files[0].endswith('a-00000.warc.gz') and files[1].endswith('a-00001.warc.gz'), files
        assert all(os.path.getsize(file) <= 16384 for file in files)


def truncated_body_is_marked_in_its_record():
    pages = {'/': (200, {'Content-Type': 'text/plain'}, b'x' * 50000)}
    with Site(pages) as site, tempfile.TemporaryDirectory() as folder:
        lines = _crawl(folder, '--warc', 'a', '--save-bodies', 'b', '--max-body', '10k', site.url('/'))
        assert lines[site.url('/')]['verdict'] == 'too_large' and lines[site.url('/')]['body'] is None, lines
        assert os.listdir(f'{folder}/b') == []
        answer = reader.exchanges(_records(folder))[site.url('/')][0]
        assert answer['fields']['WARC-Truncated'] == 'length' and answer['body'] == 'x' * 10240


def body_that_breaks_off_is_not_saved():
    pages = {'/': (200, HTML, _links('/half')),
             '/half': (200, {'Content-Length': '5000', 'Connection': 'close'}, b'x' * 100)}
    with Site(pages) as site, tempfile.TemporaryDirectory() as folder:
        lines = _crawl(folder, '--warc', 'a', '--save-bodies', 'b', '--attempts', '1', site.url('/'))
        assert lines[site.url('/half')]['verdict'] == 'failed' and lines[site.url('/half')]['body'] is None, lines
        assert [files for _, _, files in os.walk(f'{folder}/b') if files] == [[lines[site.url('/')]['body'].split('/')[1]]]
        answer = reader.exchanges(_records(folder))[site.url('/half')][0]
        assert answer['fields']['WARC-Truncated'] == 'disconnect' and answer['body'] == 'x' * 100, answer


def body_too_large_for_memory_is_archived_completely():
    """A body above its memory limit waits in an unnamed file."""
    large = random.Random(1).randbytes(5 << 20)
    pages = {'/': (200, HTML, _links('/large')), '/large': (200, {'Content-Type': 'application/zip'}, large)}
    with Site(pages) as site, tempfile.TemporaryDirectory() as folder:
        lines = _crawl(folder, '--warc', 'a', '--save-bodies', 'b', '--all-types', site.url('/'))
        answer = reader.exchanges(_records(folder))[site.url('/large')][0]
        assert answer['body'].encode('latin1') == large
        with open(f'{folder}/b/{lines[site.url("/large")]["body"]}', 'rb') as file:
            assert file.read() == large
        assert sorted(os.listdir(folder)) == ['a-00000.warc.gz', 'b', 'crawl.jsonl', 'weir.db'], os.listdir(folder)


def saved_bodies_have_names_derived_from_their_urls():
    names = ['/..%2f..%2fetc', '/a/../../b?c=../../d', '/CON', '/con', '/' + 'x' * 1500, '/%00%1b[31m', '/a|b*c']
    pages = {'/': (200, HTML, _links(*names))}
    with Site(lambda path, _: pages.get(path, (200, {'Content-Type': 'text/plain; charset=x'}, path.encode()))) as site, \
            tempfile.TemporaryDirectory() as folder:
        lines = _crawl(folder, '--save-bodies', 'b', '--include', '*', '--host-pages', '50', site.url('/'))
        assert len(lines) == 1 + len(names), lines.keys()
        saved = [os.path.relpath(os.path.join(at, name), f'{folder}/b')
                 for at, _, files in os.walk(f'{folder}/b') for name in files]
        assert sorted(saved) == sorted(line['body'] for line in lines.values())
        assert len({name.lower() for name in saved}) == len(saved)
        for url, line in lines.items():
            name = hashlib.sha256(url.encode()).hexdigest()[:32]
            assert line['body'] == f'127.0.0.1_{site.port}/{name}.{"html" if url == site.url("/") else "txt"}', line
            with open(f'{folder}/b/{line["body"]}', 'rb') as file:
                body = file.read()
            assert len(body) == line['bytes'] and (url == site.url('/') or body.decode() in url), (url, body)


def lines_of_failed_pages_name_no_saved_body():
    pages = {'/': (200, HTML, _links('/gone')), '/gone': (404, HTML, b'no')}
    with Site(pages) as site, tempfile.TemporaryDirectory() as folder:
        lines = _crawl(folder, '--save-bodies', 'b', site.url('/'))
        assert lines[site.url('/gone')]['body'] is None and lines[site.url('/')]['body'] is not None


def existing_archive_is_not_overwritten():
    pages = {'/': (200, HTML, TEXT)}
    with Site(pages) as site, tempfile.TemporaryDirectory() as folder:
        _crawl(folder, '--warc', 'a', site.url('/'))
        before = _records(folder)
        run = weir('crawl', *WORDS, '--warc', 'a', '--out', 'b.jsonl', site.url('/'), cwd=folder)
        assert run.returncode == 2 and 'exists already' in run.stderr, run
        assert _records(folder) == before
        _crawl(folder, '--warc', 'a', '--out', 'c.jsonl', '--append', site.url('/'))
        after = _records(folder)
        assert after[:len(before)] == before and after[-1]['file'].endswith('a-00001.warc.gz')


def _killed(folder, words, is_time):
    """Returns true if the crawl was killed when is_time() became true, false if it had ended
    before, and None if there was no job to resume."""
    with open(f'{folder}/said', 'w+', encoding='utf-8') as said:
        child = subprocess.Popen([os.path.abspath(sys.argv[1]), 'crawl', *WORDS, *words], cwd=folder,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said)
        while child.poll() is None and not is_time():
            time.sleep(0.001)
        child.send_signal(signal.SIGKILL)  # not sent to a process that has ended
        if child.wait() == -signal.SIGKILL:
            return True
        said.seek(0)
        text = said.read()
    if 'nothing to resume' in text:
        return None
    assert child.returncode in (0, 1), text
    return False


def archive_of_a_killed_crawl_is_valid_and_has_each_url_once():
    """V4, V5, F1: WEIR_TEST_KILLS is the number of kills. Files are small, so that kills also hit
    files just begun. The time of a kill is counted in requests, so that each run gets equally
    far on slow and fast machines; some kills come before the first request."""
    count, kills = 300, int(os.environ.get('WEIR_TEST_KILLS', '12'))
    chance = random.Random(int(os.environ.get('WEIR_TEST_SEED', '7'), 0))
    pages = {f'/{n}': (200, HTML, _links(*[f'/{m}' for m in (2 * n + 1, 2 * n + 2) if m < count])
                       + random.Random(n // 2).randbytes(3000)) for n in range(count)}

    def slowly(path, _fields):
        time.sleep(0.005)
        return pages.get(path)

    with Site(slowly) as site, tempfile.TemporaryDirectory() as folder:
        begin = ['--warc', 'a', '--warc-size', '40k', '--save-bodies', 'b', '--concurrency', '4', '--loops', '2',
                 '--ignore-robots', site.url('/0'), site.url('/1', 'localhost')]

        def time_to_kill():
            if chance.random() < 0.3:
                at = time.monotonic() + chance.uniform(0, 0.1)
                return lambda: time.monotonic() >= at
            requests = len(site.asked) + chance.randrange(1, max(2, count // kills))
            return lambda: len(site.asked) >= requests

        def run(words, is_time):
            """Runs the crawl, or starts a new one if there is no job to resume."""
            was_killed = _killed(folder, words, is_time)
            return run(begin, is_time) if was_killed is None else was_killed

        killed, words = 0, begin
        while killed < kills and run(words, time_to_kill()):
            killed += 1
            words = ['--resume'] if os.path.exists(f'{folder}/weir.db') else begin
        if killed == kills:
            run(words, lambda: False)
        assert killed > kills // 4, killed
        lines = _lines(folder)
        records = _records(folder)
        pairs = reader.exchanges(records)
        assert set(pairs) == set(lines) and len(lines) >= count, (len(pairs), len(lines))
        places = {(a['fields'].get('WARC-Target-URI'), a['fields']['WARC-Date']): n for n, a in enumerate(records)}
        for n, record in enumerate(records):  # the record to which a revisit refers exists and comes first
            fields = record['fields']
            if fields['WARC-Type'] == 'revisit':
                assert places[(fields['WARC-Refers-To-Target-URI'], fields['WARC-Refers-To-Date'])] <= n, record
        for url, line in lines.items():
            with open(f'{folder}/b/{line["body"]}', 'rb') as file:
                assert len(file.read()) == line['bytes'], url


def crawl_resumes_beside_the_archive_of_another():
    """Files that a later crawl added under the same name are not mistaken for leftovers of a crash.
    """
    pages = {f'/{n}': (200, HTML, TEXT + _links(f'/{n + 1}')) for n in range(15)}
    with Site(pages) as site, tempfile.TemporaryDirectory() as folder:
        _crawl(folder, '--warc', 'a', '--max-time', '1ms', site.url('/0'), status=(3,))
        _crawl(folder, '--warc', 'a', '--append', '--out', 'b.jsonl', site.url('/14', 'localhost'))
        _write(f'{folder}/a-00002.warc.gz', b'')  # left by a crash
        _crawl(folder, '--resume', '--job', '1', '--max-time', '0')
        pairs = reader.exchanges(_records(folder))
        assert site.url('/14', 'localhost') in pairs and {site.url(f'/{n}') for n in range(15)} <= set(pairs)


def crawl_killed_before_its_archive_was_stored_can_be_resumed():
    """The first file exists with its first record, but no commit names it; in the second case
    another crawl has taken its name."""
    pages = {f'/{n}': (200, HTML, TEXT + _links(f'/{n + 1}')) for n in range(15)}
    for is_taken in (False, True):
        with Site(pages) as site, tempfile.TemporaryDirectory() as folder:
            first = f'{folder}/a-00000.warc.gz'
            _crawl(folder, '--warc', 'a', '--max-time', '1ms', site.url('/0'), status=(3,))
            with contextlib.closing(sqlite3.connect(f'{folder}/weir.db')) as store, store:
                assert store.execute("DELETE FROM outputs WHERE path LIKE '%-00000.warc.gz'").rowcount == 1
            assert _bytes(first)
            if is_taken:
                _write(first, b'another crawl')
            lines = _crawl(folder, '--resume', '--max-time', '0')
            if is_taken:
                assert _bytes(first) == b'another crawl'
                os.unlink(first)
            records = _records(folder)
            assert {int(record['file'][-13:-8]) for record in records} == {int(is_taken)}
            pairs = reader.exchanges(records)
            assert site.url('/14') in pairs and set(pairs) <= set(lines), (pairs.keys(), lines.keys())


def archive_skips_existing_files_of_another_crawl():
    """File numbers of another crawl are skipped, also in the middle of a crawl and after a resume.
    """
    count = 30
    pages = {f'/{n}': (200, HTML, _links(f'/{2 * n + 1}', f'/{2 * n + 2}') + random.Random(n).randbytes(3000))
             for n in range(count)}
    with Site(pages) as site, tempfile.TemporaryDirectory() as folder:
        for number in (1, 2, 4):
            _write(f'{folder}/a-0000{number}.warc.gz', b'another crawl')
        _crawl(folder, '--warc', 'a', '--warc-size', '16k', site.url('/0'))
        for number in (1, 2, 4):
            assert _bytes(f'{folder}/a-0000{number}.warc.gz') == b'another crawl', number
            os.unlink(f'{folder}/a-0000{number}.warc.gz')
        records = _records(folder)
        assert {site.url(path) for path in pages} <= set(reader.exchanges(records))
        numbers = sorted({int(record['file'][-13:-8]) for record in records})
        assert numbers[:3] == [0, 3, 5] and numbers == [0, 3, *range(5, numbers[-1] + 1)], numbers


def resume_does_not_touch_the_archive_of_another_state_file():
    """Two folders have a state file each, but their archives have the same name. Both jobs are
    number 1."""
    pages = {f'/{n}': (200, HTML, TEXT + _links(f'/{n + 1}')) for n in range(15)}
    with Site(pages) as site, tempfile.TemporaryDirectory() as folder:
        one, other = f'{folder}/one', f'{folder}/other'
        os.mkdir(one)
        os.mkdir(other)
        _crawl(one, '--warc', '../a', '--max-time', '1ms', site.url('/0'), status=(3,))
        _crawl(other, '--warc', '../a', '--append', site.url('/14', 'localhost'))
        before = _bytes(f'{folder}/a-00001.warc.gz')
        _crawl(one, '--resume', '--max-time', '0')
        assert _bytes(f'{folder}/a-00001.warc.gz') == before
        pairs = reader.exchanges(_records(folder))
        assert site.url('/14', 'localhost') in pairs and {site.url(f'/{n}') for n in range(15)} <= set(pairs)


def _write(path, data):
    with open(path, 'wb') as file:
        file.write(data)


def _bytes(path):
    with open(path, 'rb') as file:
        return file.read()


if __name__ == '__main__':
    _reader = None
    if sys.argv[1:] != ['--list']:
        _reader, _why = reader.install(sys.argv.pop())
        print('read by our reader alone:' if _why else 'read by our reader and by warcio', _why or '')
    cases.main()
