# SPDX-License-Identifier: MIT
"""What a service in Python took a request for, as it tells it: one line of JSON, in X-Took, as the body, and in its log."""
import base64
import json


def took(path, **what):
    """The line. Each call is one request that a service took."""
    line = json.dumps({**what, 'path': path[:200]})  # proxies bound the fields of an answer
    print(line + '\n', end='', flush=True)
    return line


def basic(word):
    """user:password, read as leniently as Django REST framework and Werkzeug do: bytes that are not base64 are passed over."""
    try:
        return 'basic:' + base64.b64decode(word).decode('latin-1')
    except ValueError:
        return None


def credential(field):
    """As Django REST framework reads Authorization: the scheme in any case, words parted by any blanks."""
    words = field.split()
    if len(words) == 2 and words[0].lower() == 'bearer':
        return 'bearer:' + words[1]
    if len(words) == 2 and words[0].lower() == 'basic':
        return basic(words[1])
    return None
