# SPDX-License-Identifier: MIT
"""What a service in Python took a request for, as it tells it: one line of JSON, in X-Took and as the body."""
import base64
import json
import threading

_lock = threading.Lock()
_count = 0


def took(**what):
    """The line. Each call is one request that a service took."""
    global _count
    with _lock:
        _count += 1
        return json.dumps({**what, 'count': _count})


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
