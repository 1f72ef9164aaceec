#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""usage: spider.py BASE FLIGHT TIMEOUT_S

Scrapy with AutoThrottle, which aims at eight in flight; retries and the rest are its defaults."""
import sys

import scrapy
from scrapy.crawler import CrawlerProcess

BASE, FLIGHT, TIMEOUT_S = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])


class Pages(scrapy.Spider):
    name = 'pages'
    custom_settings = {
        'AUTOTHROTTLE_ENABLED': True, 'AUTOTHROTTLE_TARGET_CONCURRENCY': 8.0, 'CONCURRENT_REQUESTS': FLIGHT,
        'CONCURRENT_REQUESTS_PER_DOMAIN': FLIGHT, 'DOWNLOAD_TIMEOUT': TIMEOUT_S, 'LOG_ENABLED': False, 'ROBOTSTXT_OBEY': False,
        'TELNETCONSOLE_ENABLED': False}

    def start_requests(self):
        number = 0
        while True:
            number += 1
            yield scrapy.Request(f'{BASE}{number}')

    def parse(self, response, **_):
        pass


process = CrawlerProcess()
process.crawl(Pages)
process.start()
