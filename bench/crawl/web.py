# SPDX-License-Identifier: MIT
"""A synthetic web for benchmarks: nginx on loopback, pages of about 12 KB with 35 links each, all
reachable from the first.

Every host has the same pages, so a thousand hosts need no more files than one.
"""
import collections
import os
import random
import shutil
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'tests', 'net', 'client'))

from nginx import Nginx  # noqa: E402

LINKS = 35
BRANCHES = 10  # links of a page to new pages; the others lead anywhere
PAGE_BYTES = 12288
WORDS = 'A weir lets through what the river below can bear, and no more than that. ' * 5
ROBOTS = 'User-agent: *\nDisallow: /private/\n'
HTTP = '''sendfile on; tcp_nopush on; default_type text/html;
          log_format count '$status $server_addr $uri';'''
CONNECTIONS = 16384  # one per host, and more
LOG = 'count.log'
RAM = '/dev/shm'
RAM_BYTES = 2 << 30


def prefer_memory():
    """Puts temporary folders in memory, if there is room: CPU time is measured, not this machine's
    disk."""
    if os.path.isdir(RAM) and shutil.disk_usage(RAM).free > RAM_BYTES:
        tempfile.tempdir = RAM


def page(number, pages, chance, page_bytes, link_count):
    links = [number * BRANCHES + i for i in range(1, BRANCHES + 1) if number * BRANCHES + i < pages]
    links += [chance.randrange(pages) for _ in range(link_count - len(links))]
    chance.shuffle(links)
    text = f'<!doctype html><html><head><title>Page {number}</title></head>\n<body><h1>Page {number}</h1>\n'
    each = (page_bytes - len(text)) // link_count
    for link in links:
        anchor = f'<a class="link" href="/page/{link}">page {link}</a></p>\n'
        text += '<p>' + WORDS[:max(0, each - len(anchor) - 3)] + anchor
    return text + '</body></html>\n'


def is_page(line):
    return line.startswith('200 ') and '/page/' in line


class Web(Nginx):
    """with Web(pages=100) as web: … web.seeds(1000) … web.fetched()"""

    def __init__(self, pages, page_bytes=PAGE_BYTES, links=LINKS):
        super().__init__(logs=False, everywhere=True, connections=CONNECTIONS,
                         http=HTTP, server=f'access_log {LOG} count buffer=1m;')
        chance = random.Random(1)
        os.makedirs(f'{self.folder}/www/page')
        for number in range(pages):
            with open(f'{self.folder}/www/page/{number}', 'w', encoding='ascii') as file:
                file.write(page(number, pages, chance, page_bytes, links))
        with open(f'{self.folder}/www/robots.txt', 'w', encoding='ascii') as file:
            file.write(ROBOTS)

    def seeds(self, hosts):
        """Returns the first page of this many hosts, each at its own address."""
        return [f'http://127.0.{host // 250}.{host % 250 + 1}:{self.port}/page/0' for host in range(hosts)]

    def requests(self):
        """Returns the number of responses of each kind since the last call, by a text such as '200
        127.0.0.1 /page/0'."""
        self.process.send_signal(signal.SIGUSR1)  # makes nginx write its buffered log
        log, size = f'{self.folder}/{LOG}', -1
        while size != os.path.getsize(log):
            size = os.path.getsize(log)
            time.sleep(0.2)
        with open(log, encoding='ascii') as file:
            lines = file.read().splitlines()
        os.truncate(log, 0)
        return collections.Counter(lines)

    def fetched(self):
        """Returns (different pages served, requests of all kinds) since the last call."""
        requests = self.requests()
        return len([line for line in requests if is_page(line)]), requests.total()
