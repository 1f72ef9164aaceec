# SPDX-License-Identifier: MIT
"""Services that answer like large APIs (services/apis.py)."""
import sys

from rig.setup import Server, Setup, flight, rate, window

# for services whose reset field says when a bucket is full, which does not forbid earlier requests
RETRY_ONLY = ('retry-after',)


def api(name):
    return Server(words=(sys.executable, '-B', '@services@/apis.py', '@port@', '@latency_ms@', name))


SETUPS = [
    Setup('github', api('github'), window(300, 60), (403,), short=True, traits=('window', 'fields')),
    Setup('github-secondary', api('github-secondary'), window(80, 10), (403,), ban_s=20, windows=RETRY_ONLY, traits=('ban', 'retry-after')),
    Setup('shopify', api('shopify'), rate(2, 40), short=True, traits=('bucket', 'retry-after')),
    Setup('discord', api('discord'), window(10, 2), short=True, traits=('window', 'fields')),
    Setup('reddit', api('reddit'), window(100, 60), short=True, traits=('window', 'fields')),
    Setup('openai', api('openai'), rate(5, 30), windows=RETRY_ONLY, short=True, traits=('bucket', 'fields')),
    Setup('anthropic', api('anthropic'), rate(5, 50), windows=RETRY_ONLY, traits=('bucket', 'fields')),
    Setup('anthropic-529', api('anthropic-529'), flight(5, 220), (529,), latency_ms=220, traits=('flight',)),
    Setup('cloudflare-api', api('cloudflare-api'), window(120, 60), short=True, traits=('window', 'fields')),
    Setup('cloudflare-dates', api('cloudflare-dates'), window(100, 20), traits=('window', 'retry-after')),
    Setup('cloudflare-rule', api('cloudflare-rule'), window(50, 10), ban_s=10, traits=('ban', 'retry-after')),
    Setup('aws-gateway', api('aws-gateway'), rate(10, 20), short=True, traits=('bucket',)),
    Setup('aws-s3', api('aws-s3'), rate(20, 40), (503,), traits=('bucket',)),
    Setup('aws-selling-partner', api('aws-selling-partner'), rate(0.5, 15), traits=('bucket', 'slow', 'fields')),
]
