# SPDX-License-Identifier: MIT
"""Shared by the tests of the dashboard: one Chromium for all of them, and resources that are opened
once and closed at the end."""
import contextlib
import functools
import http.client
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'cli'), os.path.join(HERE, '..', 'serve')]

import browser  # noqa: E402
import cases  # noqa: E402

PATIENCE_S = browser.PATIENCE_S
_open = contextlib.ExitStack()


def once(make):
    """Returns a function that enters the context manager made by `make` at its first call; `main`
    leaves it."""
    return functools.lru_cache(None)(lambda: _open.enter_context(make()))


_chromium = once(browser.Browser)


@contextlib.contextmanager
def page(url, **how):
    """Yields a tab that shows the dashboard at `url` and receives its events."""
    tab = _chromium().page(**how)
    try:
        tab.go(url)
        tab.wait('document.querySelector("#link").dataset.state === "live" && document.querySelector("main").children.length > 0')
        yield tab
    finally:
        tab.close()


def unlock(tab, token):
    """Enters the token as a user does: the lock, the token, Enter."""
    tab.click('#lock')
    tab.write('#token', token)
    tab.press('Enter')
    tab.wait('document.body.classList.contains("trusted")')


def until(true, seconds=PATIENCE_S):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, 'it never came'
        time.sleep(0.05)


def ask(port, method, path, body=None, **fields):
    """Sends a request and returns the response, with its body in `text`. The body of a stream of
    events is not read."""
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=PATIENCE_S)
    connection.request(method, path, body, {name.replace('_', '-'): value for name, value in fields.items()})
    answer = connection.getresponse()
    answer.text = b'' if answer.getheader('content-type') == 'text/event-stream' else answer.read()
    connection.close()
    return answer


def main():
    try:
        cases.main()
    finally:
        _open.close()
