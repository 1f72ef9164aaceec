# SPDX-License-Identifier: MIT
"""spider.py SEEDS OUT PAGES - the Scrapy spider of bench/crawl/run: as fast as Scrapy can be while
it obeys robots.txt.

Links are found by one XPath, which is quicker than Scrapy's LinkExtractor, and known URLs by a set,
which is quicker than its filter of duplicates; cookies and the telnet console are off; no host has
a delay. Ends after PAGES pages.
"""
import sys
from urllib.parse import urlsplit

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess


class Pages(Spider):
    name = 'pages'

    def __init__(self, seeds, **more):
        super().__init__(**more)
        self.start_urls = seeds
        self.hosts = {urlsplit(seed).netloc for seed in seeds}
        self.known = set(seeds)

    def parse(self, response):
        yield {'url': response.url, 'status': response.status, 'bytes': len(response.body),
               'title': response.xpath('//title/text()').get()}
        for link in response.xpath('//a/@href').getall():
            url = response.urljoin(link)
            if url not in self.known and urlsplit(url).netloc in self.hosts:
                self.known.add(url)
                yield Request(url, dont_filter=True)


def main(seeds, out, pages):
    with open(seeds, encoding='ascii') as file:
        urls = file.read().split()
    process = CrawlerProcess({
        'ROBOTSTXT_OBEY': True, 'CONCURRENT_REQUESTS': 256, 'CONCURRENT_REQUESTS_PER_DOMAIN': 256,
        'CLOSESPIDER_PAGECOUNT': int(pages), 'COOKIES_ENABLED': False, 'TELNETCONSOLE_ENABLED': False,
        'LOG_LEVEL': 'ERROR', 'FEEDS': {out: {'format': 'jsonlines'}}, 'REQUEST_FINGERPRINTER_IMPLEMENTATION': '2.7'})
    process.crawl(Pages, seeds=urls)
    process.start()


if __name__ == '__main__':
    main(*sys.argv[1:])
