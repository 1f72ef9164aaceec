# SPDX-License-Identifier: MIT
"""Other services on Node: rate-limiter-flexible, Fastify, Koa, hapi, restify, bottleneck."""
import json

from rig.setup import Server, Setup, flight, rate, window


def node(script, options, *modules):
    return Server(words=('node', f'@services@/{script}.js', '@port@', '@latency_ms@', json.dumps(options)), needs=('command -v node',),
                  modules=modules)


def flexible(**options):
    return node('flexible', options, 'rate-limiter-flexible')


def bottleneck(**options):
    return node('bottleneck', options, 'bottleneck')


SETUPS = [
    Setup('flexible-block-fields', flexible(limits=[{'points': 20, 'duration': 2, 'blockDuration': 10}], fields=True),
          window(20, 2), ban_s=10, traits=('ban', 'fields', 'retry-after-on-200')),
    Setup('flexible-block', flexible(limits=[{'points': 20, 'duration': 2, 'blockDuration': 10}]), window(20, 2), ban_s=10,
          traits=('ban', 'bare')),
    Setup('flexible-two', flexible(limits=[{'points': 2, 'duration': 1}], burst={'points': 5, 'duration': 10}), rate(2.5),
          traits=('window', 'two', 'bare')),
    Setup('flexible-40-5s-fields', flexible(limits=[{'points': 40, 'duration': 5}], fields=True), window(40, 5),
          traits=('window', 'fields', 'retry-after-on-200')),
    Setup('fastify-100-20s', node('fastify', {'max': 100, 'timeWindow': 20000}, 'fastify', '@fastify/rate-limit'), window(100, 20),
          traits=('window', 'fields')),
    Setup('fastify-ban-60-10s', node('fastify', {'max': 60, 'timeWindow': 10000, 'ban': 2}, 'fastify', '@fastify/rate-limit'),
          window(60, 10), (429, 403), traits=('window', 'fields', 'ban')),
    Setup('koa-60-10s', node('koa', {'max': 60, 'duration': 10000}, 'koa', 'koa-ratelimit'), window(60, 10), traits=('window', 'fields')),
    Setup('koa-bare-60-10s', node('koa', {'max': 60, 'duration': 10000, 'disableHeader': True}, 'koa', 'koa-ratelimit'), window(60, 10),
          traits=('window', 'bare')),
    Setup('hapi-60-10s', node('hapi', {'userLimit': 60, 'userCache': {'expiresIn': 10000}}, '@hapi/hapi', 'hapi-rate-limit'),
          window(60, 10), traits=('window', 'fields')),
    Setup('restify-6-burst-12', node('restify', {'rate': 6, 'burst': 12, 'ip': True}, 'restify'), rate(6, 12), traits=('bucket', 'fields')),
    Setup('bottleneck-flight-5', bottleneck(maxConcurrent=5, highWater=0), flight(5, 220), (503,), latency_ms=220, traits=('flight',)),
    Setup('bottleneck-queue-10', bottleneck(minTime=100, highWater=20), rate(10, 20), (503,), traits=('queue',)),
    Setup('bottleneck-reservoir', bottleneck(reservoir=60, reservoirRefreshAmount=60, reservoirRefreshInterval=10000, highWater=0),
          window(60, 10), (503,), traits=('window', 'bare')),
]
