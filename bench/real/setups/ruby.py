# SPDX-License-Identifier: MIT
"""Rack::Attack on Puma."""
from rig.setup import Server, Setup, window


def attack(*words):
    return Server(words=('puma', '--quiet', '-t', '64:64', '-w', '0', '-b', 'tcp://127.0.0.1:@port@', '-e', 'production', '--dir', '@folder@',
                         '@services@/rack_attack.ru'),
                  env={'RACK_ATTACK': ' '.join(words), 'LATENCY_MS': '@latency_ms@', 'HOME': '@folder@'},
                  needs=('command -v puma', "ruby -e 'require \"rack/attack\"'"))


SETUPS = [
    Setup('rack-attack-50-10s', attack('throttle', '50', '10'), window(50, 10), traits=('window', 'clock', 'bare')),
    Setup('rack-attack-60-20s-retry', attack('throttle', '60', '20', 'fields'), window(60, 20), traits=('window', 'clock', 'retry-after')),
    Setup('rack-attack-ban', attack('ban', '80', '10', '30'), window(79, 10), (403,), ban_s=30, traits=('ban', 'clock')),
]
