# SPDX-License-Identifier: MIT
"""Express with express-rate-limit for each style of response fields, and express-slow-down."""
import json

from rig.setup import Server, Setup, window


def express(*middleware):
    """Each middleware is a kind and its options, as in its documentation."""
    return Server(words=('node', '@services@/express.js', '@port@', '@latency_ms@', json.dumps(middleware)), needs=('command -v node',),
                  modules=('express', 'express-rate-limit', 'express-slow-down'))


def limit(quota, seconds, standard=False, legacy=False):
    return {'kind': 'limit', 'windowMs': seconds * 1000, 'limit': quota, 'standardHeaders': standard, 'legacyHeaders': legacy}


SETUPS = [
    Setup('express-bare-50-10s', express(limit(50, 10)), window(50, 10), traits=('window', 'bare')),
    Setup('express-legacy-50-10s', express(limit(50, 10, legacy=True)), window(50, 10), traits=('window', 'fields')),
    Setup('express-draft6-100-60s', express(limit(100, 60, 'draft-6')), window(100, 60), traits=('window', 'fields')),
    Setup('express-draft7-50-10s', express(limit(50, 10, 'draft-7')), window(50, 10), traits=('window', 'fields')),
    Setup('express-draft8-50-10s', express(limit(50, 10, 'draft-8')), window(50, 10), traits=('window', 'fields')),
    Setup('express-two', express(limit(10, 1, 'draft-7'), limit(240, 60, 'draft-7')), window(240, 60), traits=('window', 'fields', 'two')),
    Setup('express-slow-down', express({'kind': 'slow', 'windowMs': 10000, 'delayAfter': 80, 'stepMs': 100, 'maxDelayMs': 5000}),
          window(80, 10), traits=('slow-down',)),
    Setup('express-503-30-5s', express({**limit(30, 5), 'statusCode': 503}), window(30, 5), (503,), traits=('window', 'bare')),
]
