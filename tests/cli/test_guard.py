#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir guard: its verdict on addresses and URLs. The table of addresses has its own tests."""
import cases
from program import refusal, weir


def _judged(*words):
    """Returns [(verdict, reason, operand)], the exit status and stderr."""
    run = weir('guard', *words)
    return [tuple(line.split('\t')) for line in run.stdout.splitlines()], run.returncode, run.stderr


def guard_allows_or_blocks_addresses_with_a_reason():
    lines, status, errors = _judged('9.9.9.9', '127.0.0.1', '::1', '169.254.169.254', '2606:4700::1111')
    assert status == 1 and errors == ''
    assert [line[0] for line in lines] == ['allowed', 'blocked', 'blocked', 'blocked', 'allowed']
    assert lines[1] == ('blocked', '127.0.0.1 is loopback: this machine', '127.0.0.1')
    assert 'metadata' in lines[3][1]
    assert _judged('9.9.9.9', '2606:4700::1111')[1] == 0


def guard_blocks_odd_spellings_of_loopback_addresses():
    for odd in ('127.1', '0x7f000001', '2130706433', '0177.1', 'http://127.1/', 'http://0x7f.1:8080/a', '[::1]', '[::1]:80',
                'http://[::ffff:127.0.0.1]/', 'http://user@127.0.0.1/', 'http://１２７.1/', '127.0.0.1:80', '127.0.0.1.'):
        lines, status, errors = _judged(odd)
        assert status == 1 and errors == '' and len(lines) == 1, (odd, lines, errors)
        assert lines[0][0] == 'blocked' and 'loopback' in lines[0][1], (odd, lines)
    assert _judged('http://9.9.9.9:81/x?y')[0][0][0] == 'allowed'


def guard_blocks_ipv6_addresses_that_embed_private_ipv4():
    for carrier in ('::ffff:10.0.0.1', '64:ff9b::10.0.0.1', '2002:a00:1::', 'http://[2002:a00:1::]/'):
        lines, status, _ = _judged(carrier)
        assert status == 1 and lines[0][0] == 'blocked' and 'private' in lines[0][1], lines
    assert _judged('64:ff9b::9.9.9.9')[1] == 0


def guard_blocks_invalid_urls():
    for bad in ('file:///etc/passwd', 'gopher://x/', 'http://', 'http://a b/', 'http://1.2.3.256/', ''):
        lines, status, errors = _judged(bad)
        assert status == 1 and errors == '' and len(lines) == 1 and lines[0][0] == 'blocked', (bad, lines, errors)


def guard_prints_hostile_text_escaped():
    run = weir('guard', '\x1b[2J\x07\t\n')
    assert run.returncode == 1 and '\x1b' not in run.stdout and run.stdout.count('\n') == 1


def guard_resolves_host_names():
    lines, status, errors = _judged('http://localhost:8080/')
    assert status == 1 and len(lines) == 1 and lines[0][0] == 'blocked' and 'loopback' in lines[0][1], (lines, errors)


def guard_refuses_invalid_arguments():
    assert 'ADDRESS' in refusal('guard')
    assert '--timeout' in refusal('guard', '--timeout', 'x', '9.9.9.9')


if __name__ == '__main__':
    cases.main()
