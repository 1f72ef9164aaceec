#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""usage: flask_limits.py PORT LATENCY_MS LIMITS STRATEGY fields|none

Flask-Limiter with its memory storage, served by Waitress."""
import sys
import time

import waitress
from flask import Flask
from flask_limiter import Limiter
from flask_limiter.util import get_remote_address

PORT, LATENCY_MS, LIMITS, STRATEGY, FIELDS = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:6]
app = Flask(__name__)
limiter = Limiter(get_remote_address, app=app, default_limits=[LIMITS], strategy=STRATEGY, storage_uri='memory://',
                  headers_enabled=FIELDS == 'fields')


@app.route('/', defaults={'path': ''})
@app.route('/<path:path>')
def page(path):
    time.sleep(LATENCY_MS / 1e3)
    return '<p>served</p>\n'


waitress.serve(app, host='127.0.0.1', port=PORT, threads=64, channel_timeout=60, _quiet=True)
