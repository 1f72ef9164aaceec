# SPDX-License-Identifier: MIT
"""Varnish with vsthrottle, a token bucket that may block for a time. It drops fractions of a token
at each request."""
from rig.setup import Server, Setup, rate

VCL = '''vcl 4.1;
import vsthrottle;
backend origin { .host = "127.0.0.1"; .port = "@origin@"; }
sub vcl_recv {
    if (vsthrottle.is_denied("" + client.ip, %s)) { return (synth(429, "Too Many Requests")); }
    return (pass);
}
'''


def varnish(words):
    return Server(files={'default.vcl': VCL % words}, words=(
        'varnishd', '-F', '-n', '@folder@/n', '-j', 'none', '-a', '127.0.0.1:@port@', '-f', '@folder@/default.vcl', '-s', 'malloc,8m',
        '-p', 'thread_pools=1', '-p', 'timeout_idle=60', '-p', 'vsl_space=1M'),
        needs=('command -v varnishd', 'command -v gcc', 'ls /usr/lib/*/varnish/vmods/libvmod_vsthrottle.so'))


SETUPS = [
    Setup('varnish-15-10s', varnish('15, 10s'), rate(1.5, 15, 0.005), traits=('bucket', 'slow')),
    Setup('varnish-20-1s', varnish('20, 1s'), rate(20, 20, 0.003), traits=('bucket',)),
    Setup('varnish-60-10s-block', varnish('60, 10s, 20s'), rate(6, 60, 0.004), ban_s=20, traits=('ban', 'bucket')),
]
