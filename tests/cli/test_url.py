#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir url: one URL, resolved and normalised. The corner cases are in the tests of the parser."""
import json

import cases
from program import refusal, weir


def _printed(*words):
    run = weir('url', *words)
    assert run.returncode == 0 and run.stderr == '', (words, run.stderr)
    assert run.stdout.endswith('\n') and run.stdout.count('\n') == 1
    return run.stdout.rstrip('\n')


def _reason(*words):
    run = weir('url', *words)
    assert run.returncode == 1 and run.stdout == '', (words, run.stdout)
    assert run.stderr.startswith('weir url: ') and run.stderr.count('\n') == 1
    return run.stderr.rstrip('\n')


def url_is_printed_normalised():
    assert _printed('HTTP://Example.ORG:80/a/../b c?d#e') == 'http://example.org/b%20c?d#e'
    assert _printed('https://bücher.example/ü') == 'https://xn--bcher-kva.example/%C3%BC'
    assert _printed('http://0x7f.1/') == 'http://127.0.0.1/'
    assert _printed('http://１２７.1/') == 'http://127.0.0.1/'
    assert _printed('--', 'http:/x') == 'http://x/'


def relative_url_is_resolved_against_the_base():
    assert _printed('--base', 'https://h.example/a/b?c', '../d') == 'https://h.example/d'
    assert _printed('--base=https://h.example/a/b?c', '//evil.example') == 'https://evil.example/'
    assert _printed('--base', 'http://h/a', '') == 'http://h/a'
    assert _printed('--base', 'http://h/a', 'https://x') == 'https://x/'


def url_json_has_url_canonical_form_key_and_robots_url():
    result = json.loads(_printed('--json', 'http://u:p@EXAMPLE.com.:80/%7ea/%2F?q#f'))
    assert result == {
        'url': 'http://u:p@example.com./%7ea/%2F?q#f',
        'canonical': 'http://example.com/~a/%2F?q',
        'key': 'example.com',
        'robots_url': 'http://example.com/robots.txt',
    }
    result = json.loads(_printed('--json', 'https://[::1]:8443/'))
    assert (result['key'], result['robots_url']) == ('[::1]:8443', 'https://[::1]:8443/robots.txt')


def invalid_url_is_refused_with_a_reason():
    assert _reason('javascript:alert(1)') == 'weir url: "javascript:alert(1)": its scheme is not http or https'
    assert 'it is relative' in _reason('a/b') and 'it is relative' in _reason('')
    assert 'no host' in _reason('http://')
    assert 'port' in _reason('http://x:65536/') and 'port' in _reason('http://x:0/') and 'port' in _reason('http://x:-1/')
    assert 'IPv4' in _reason('http://1.2.3.256/')
    assert 'IPv6' in _reason('http://[::1/')
    assert 'internationalized' in _reason('http://xn--a/')
    assert 'longer than 8192' in _reason('http://x/' + 'a' * 100000)
    assert '--base "x"' in _reason('--base', 'x', 'y')


def url_errors_show_no_password():
    """V10"""
    for words in (('http://u:s3cret@h:99999/',), ('--base', 'http://u:s3cret@h:99999/', 'x')):
        reason = _reason(*words)
        assert '"http://h:99999/": its port' in reason and 's3cret' not in reason, reason


def hostile_host_names_are_refused_in_one_printable_line():
    for host in ('a"b', "a'b", 'a<b', 'a b', 'a%0ab', '..', 'a..b', 'a%2f..', 'x' * 64, '.'.join(['a' * 50] * 6)):
        reason = _reason(f'http://{host}/')
        assert all(32 <= ord(c) < 127 for c in reason), reason
    assert '\x1b' not in _reason('http://\x1b[31m/')


def spellings_of_one_page_share_one_canonical_url():
    spellings = ['http://EXAMPLE.com', 'http://example.com:80/', 'http://example.com./', 'http://example.com/#f',
                 'http://example.com/a/..', 'http://u@example.com/%2e/', ' http:\\\\example.com\\\n']
    assert {json.loads(_printed('--json', spelling))['canonical'] for spelling in spellings} == {'http://example.com/'}


def url_command_takes_exactly_one_url():
    assert 'weir url' in refusal('url')
    assert 'weir url' in refusal('url', 'http://a/', 'http://b/')


if __name__ == '__main__':
    cases.main()
