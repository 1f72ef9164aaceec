# SPDX-License-Identifier: MIT
"""The command that starts each client: it fetches pages of one host, with at most 64 requests in
flight, until it is stopped."""
import dataclasses
import os
import signal
import sys

CLIENTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'clients')
FLIGHT = 64
TOLD_FLIGHT = 8  # more connections would be idle for so long that servers close them
TIMEOUT_S = 10
PAGES_A_SECOND = 40  # length of the list of URLs, which must not end before the run


@dataclasses.dataclass(frozen=True)
class Run:
    """The values that a command may need."""

    weir: str
    folder: str
    port: int
    seconds: float
    setup: object

    @property
    def base(self):
        return f'http://127.0.0.1:{self.port}/page/'

    def urls(self):
        path = f'{self.folder}/urls'
        with open(path, 'w', encoding='ascii') as file:
            file.writelines(f'{self.base}{number}\n' for number in range(int(self.seconds * PAGES_A_SECOND) + 1000))
        return path


@dataclasses.dataclass(frozen=True)
class Client:
    words: object               # Run -> list of arguments
    remembers: bool = False     # has a state that a second run may continue with
    stop: int = signal.SIGTERM
    needs: tuple = ()
    modules: tuple = ()


PACE = ['--allow-private', '--ignore-robots', '--max-rate', '1000', '--per-host', str(FLIGHT), '--concurrency', str(FLIGHT),
        '--timeout', f'{TIMEOUT_S}s', '--quiet']


def weir_fetch(run):
    return [run.weir, 'fetch', '--urls-file', run.urls(), '--out', f'{run.folder}/out.jsonl', '--append',
            '--state', f'{run.folder}/state.db', *PACE]


def weir_crawl(run):
    """Each run is a new job; the state keeps what was learned about the host."""
    return [run.weir, 'crawl', '--seeds-file', run.urls(), '--depth', '1', '--loops', '1', '--failure-threshold', '0',
            '--out', f'{run.folder}/out.jsonl', '--append', '--state', f'{run.folder}/state.db', *PACE]


def told(run):
    limit = run.setup.limit
    return [sys.executable, '-B', f'{CLIENTS}/told.py', str(run.port), str(limit.spacing_s), str(limit.burst), str(limit.flight or TOLD_FLIGHT), str(run.setup.ban_s)]


def scrapy(run):
    return ['/usr/bin/python3', '-B', f'{CLIENTS}/spider.py', run.base, str(FLIGHT), str(TIMEOUT_S)]


def curl(run):
    """Eight curl processes, each with one request after the other. To retry, curl truncates its
    output file, which is impossible for /dev/null."""
    return ['sh', '-c', 'for i in 1 2 3 4 5 6 7 8; do curl -q -s --retry 10 --max-time "$2" -o page$i "$1$i-[1-100000]" & done; wait',
            'sh', run.base, str(TIMEOUT_S)]


def wget2(run):
    """Five threads, the default of wget2; it does not retry refused requests. After the last URL it
    starts from the first."""
    return ['sh', '-c', 'while :; do wget2 --no-config -q -O /dev/null --tries 10 --waitretry 10 --timeout "$2" -i "$1"; done', 'sh',
            run.urls(), str(TIMEOUT_S)]


def node(script, *modules):
    return Client(lambda run: ['node', f'{CLIENTS}/{script}.js', run.base, str(FLIGHT), str(TIMEOUT_S * 1000)], needs=('command -v node',),
                  modules=modules)


ALL = {
    'weir': Client(weir_fetch, remembers=True, stop=signal.SIGINT),
    'weir-crawl': Client(weir_crawl, remembers=True, stop=signal.SIGINT),
    'told': Client(told),
    'scrapy': Client(scrapy, needs=('/usr/bin/python3 -c "import scrapy"',)),
    'got': node('got', 'got'),
    'curl': Client(curl, needs=('command -v curl',)),
    'wget2': Client(wget2, needs=('command -v wget2',)),
    'axios': node('axios', 'axios', 'axios-retry', 'bottleneck'),
    'aimd': node('aimd'),
}
