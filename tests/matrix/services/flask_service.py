# SPDX-License-Identifier: MIT
"""A Flask (Werkzeug) service, served by waitress. Argument: a loopback port."""
import re
import sys

import waitress
from flask import Flask, Response, request

from took import took

app = Flask(__name__, static_folder=None)


def _credential():
    """Basic is parsed by Werkzeug; Bearer as Flask-HTTPAuth does: the scheme in any case, the rest
    is the token."""
    if request.authorization is not None and request.authorization.type == 'basic':
        return f'basic:{request.authorization.username}:{request.authorization.password}'
    words = request.headers.get('Authorization', '').split(None, 1)
    return 'bearer:' + words[1] if len(words) == 2 and words[0].lower() == 'bearer' else None


def _host():
    """Returns the host as most services parse it: up to the ':', or to the ']' of an IPv6 address.
    """
    return re.match(r'\[[^]]*\]|[^:]*', request.host).group()


def _answer(route):
    line = took(route=route, method=request.method, host=_host(), path=request.path,
                credential=_credential(), key=request.headers.get('X-Api-Key'),
                ip=request.headers.get('X-Forwarded-For', '').split(',')[0].strip())
    return Response(line, headers={'X-Took': line})


ANY = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']


@app.route('/login', methods=['POST'])
def _login():
    return _answer('login')


@app.route('/api/items/<item>', methods=ANY)
def _item(item):
    return _answer('item')


@app.route('/admin/', methods=ANY)
@app.route('/admin/<path:page>', methods=ANY)
def _admin(page=''):
    return _answer('admin')


@app.route('/static/<path:file>', methods=ANY)
def _static(file):
    return _answer('static')


@app.route('/', methods=ANY)
def _home():
    return _answer('home')


@app.errorhandler(404)
@app.errorhandler(405)
def _none(_):
    return _answer('none')


if __name__ == '__main__':
    # The proxy sets X-Forwarded-For; waitress 3 would remove it without this option.
    waitress.serve(app, host='127.0.0.1', port=int(sys.argv[1]), threads=8, channel_timeout=600,
                   clear_untrusted_proxy_headers=False, _quiet=True)
