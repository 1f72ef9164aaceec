# SPDX-License-Identifier: MIT
"""Reports how a Python service understood a request: one line of JSON, in X-Took, as the body, and
in its log."""
import base64
import json


def took(path, **what):
    """Prints and returns the line. Each call is one request that a service received."""
    line = json.dumps({**what, 'path': path[:200]})  # proxies limit the size of response fields
    print(line + '\n', end='', flush=True)
    return line


def basic(word):
    """Returns user:password, decoded as leniently as Django REST framework and Werkzeug do: bytes
    that are not base64 are skipped."""
    try:
        return 'basic:' + base64.b64decode(word).decode('latin-1')
    except ValueError:
        return None


def credential(field):
    """Parses Authorization as Django REST framework does: the scheme in any case, words separated
    by any blanks."""
    words = field.split()
    if len(words) == 2 and words[0].lower() == 'bearer':
        return 'bearer:' + words[1]
    if len(words) == 2 and words[0].lower() == 'basic':
        return basic(words[1])
    return None
