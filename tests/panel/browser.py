# SPDX-License-Identifier: MIT
"""A headless Chromium, driven through two pipes with its DevTools protocol. It needs no package of
Python or Node.

    with Browser() as browser:
        page = browser.page()
        page.go('http://127.0.0.1:8080/')
        page.wait('document.title === "weir"')
        page.run('document.title')
"""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAM = shutil.which('chromium') or shutil.which('chromium-browser') or shutil.which('google-chrome')
PATIENCE_S = 120  # machines that run tests are busy
# Switches off what Chromium does in the background, and what a container without a screen lacks.
FLAGS = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--remote-debugging-pipe', '--no-first-run',
         '--no-default-browser-check', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--mute-audio',
         '--disable-extensions', '--hide-scrollbars', '--force-color-profile=srgb', '--disable-features=Translate,MediaRouter']


class Failed(Exception):
    """The browser reported an error, ended, or did not answer in time."""


class Browser:
    """A Chromium process. `flags` are further command-line arguments."""

    def __init__(self, flags=()):
        self.folder = tempfile.mkdtemp(prefix='weir-chromium-')
        ours_read, theirs_write = os.pipe()
        theirs_read, ours_write = os.pipe()
        # The file descriptors must be 3 and 4: a shell moves them there.
        self.process = subprocess.Popen(
            ['sh', '-c', f'exec "$@" 3<&{theirs_read} 4>&{theirs_write}', 'sh', PROGRAM, *FLAGS, *flags, f'--user-data-dir={self.folder}',
             'about:blank'],
            pass_fds=(theirs_read, theirs_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._log('w'),
            start_new_session=True, env={**os.environ, 'LANG': 'C.UTF-8'})
        os.close(theirs_read)
        os.close(theirs_write)
        self.reads, self.writes = ours_read, ours_write
        self.heard, self.number, self.answers, self.events = b'', 0, {}, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call('Browser.close')
        except (Failed, OSError):
            pass
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            self.process.wait()
        os.close(self.reads)
        os.close(self.writes)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _log(self, mode):
        return open(f'{self.folder}/said', mode, encoding='utf-8', errors='replace')

    def _end(self):
        """Returns why the browser ended: its status and its last output."""
        with self._log('r') as said:
            return f'the browser has ended with {self.process.wait(PATIENCE_S)}: {said.read()[-2000:]}'

    def _hear(self, until):
        while b'\0' not in self.heard:
            ready, _, _ = select.select([self.reads], [], [], max(0, until - time.monotonic()))
            more = os.read(self.reads, 1 << 20) if ready else b''
            if not more:
                raise Failed('the browser is silent' if not ready else self._end())
            self.heard += more
        text, self.heard = self.heard.split(b'\0', 1)
        message = json.loads(text)
        if 'id' in message:
            self.answers[message['id']] = message
        else:
            self.events.append(message)

    def call(self, method, session=None, **params):
        self.number += 1
        number, until = self.number, time.monotonic() + PATIENCE_S
        message = {'id': number, 'method': method, 'params': params, **({'sessionId': session} if session else {})}
        try:
            os.write(self.writes, json.dumps(message).encode() + b'\0')
        except BrokenPipeError as why:
            raise Failed(self._end()) from why
        while number not in self.answers:
            self._hear(until)
        answer = self.answers.pop(number)
        if 'error' in answer:
            raise Failed(f'{method}: {answer["error"]}')
        return answer['result']

    def page(self, **how):
        return Page(self, **how)


class Page:
    """One tab. `before` is a script that runs before the scripts of the page."""

    def __init__(self, browser, width=1280, height=900, dark=False, phone=False, calm=False, before=None, scale=1):
        self.browser = browser
        self.target = browser.call('Target.createTarget', url='about:blank')['targetId']
        self.session = browser.call('Target.attachToTarget', targetId=self.target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Network', 'Log', 'Security'):
            self.call(f'{domain}.enable')
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=scale, mobile=phone)
        self.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'},
                                                          {'name': 'prefers-reduced-motion', 'value': 'reduce' if calm else 'no-preference'}])
        if before:
            self.call('Page.addScriptToEvaluateOnNewDocument', source=before)

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def close(self):
        self.browser.call('Target.closeTarget', targetId=self.target)

    def go(self, url):
        failed = self.call('Page.navigate', url=url).get('errorText')
        if failed:
            raise Failed(f'{url}: {failed}')

    def run(self, script):
        """Returns the value of an expression, which may be a promise."""
        result = self.call('Runtime.evaluate', expression=script, awaitPromise=True, returnByValue=True)
        if 'exceptionDetails' in result:
            raise Failed(f'{script}: {result["exceptionDetails"]}')
        return result['result'].get('value')

    def wait(self, script, seconds=PATIENCE_S):
        """Waits until the expression is true and returns its value."""
        until, value = time.monotonic() + seconds, None
        while time.monotonic() < until:
            try:
                value = self.run(script)
            except Failed as why:
                value = None
                if 'silent' in str(why) or 'ended' in str(why):
                    raise
            if value:
                return value
            time.sleep(0.05)
        raise Failed(f'never true: {script}; the page says: {self.run("document.body.innerText.slice(0, 2000)")!r}, complaints: {self.complaints()}')

    def click(self, selector):
        self.wait(f'!!document.querySelector({json.dumps(selector)})')
        self.run(f'document.querySelector({json.dumps(selector)}).click()')

    def write(self, selector, text):
        """Enters text as a user does: focuses the element and lets the browser insert the text."""
        self.wait(f'!!document.querySelector({json.dumps(selector)})')
        self.run(f'document.querySelector({json.dumps(selector)}).focus()')
        self.run(f'document.querySelector({json.dumps(selector)}).select()')
        self.call('Input.insertText', text=text)

    def press(self, key, code=0, text=None, modifiers=0):
        codes = {'Enter': (13, '\r'), 'Tab': (9, None), 'Escape': (27, None), 'ArrowDown': (40, None), 'ArrowUp': (38, None), 'ArrowLeft': (37, None)}
        code, text = codes.get(key, (code or ord(key[0].upper()), text or key))
        params = {'key': key, 'windowsVirtualKeyCode': code, 'modifiers': modifiers}
        self.call('Input.dispatchKeyEvent', type='keyDown', **params, **({'text': text} if text else {}))
        self.call('Input.dispatchKeyEvent', type='keyUp', **params)

    def complaints(self):
        """Returns the errors that the page or the browser has reported so far: exceptions,
        violations of the content security policy, failed loads."""
        self.run('0')
        found = []
        for event in self.browser.events:
            params = event.get('params', {})
            if event.get('sessionId') != self.session:
                continue
            if event['method'] == 'Runtime.exceptionThrown':
                found.append(params['exceptionDetails'].get('exception', {}).get('description', params['exceptionDetails']['text']))
            elif event['method'] == 'Log.entryAdded' and params['entry']['level'] == 'error':
                found.append(f'{params["entry"]["text"]} {params["entry"].get("url", "")}')
        return found

    def fetched(self):
        """Returns the addresses of all requests so far."""
        self.run('0')
        return [event['params']['request']['url'] for event in self.browser.events
                if event['method'] == 'Network.requestWillBeSent' and event.get('sessionId') == self.session]

    def picture(self, path, whole=False):
        size = self.call('Page.getLayoutMetrics')['cssContentSize'] if whole else None
        clip = {'clip': {'x': 0, 'y': 0, 'width': size['width'], 'height': size['height'], 'scale': 1}, 'captureBeyondViewport': True} if whole else {}
        data = self.call('Page.captureScreenshot', format='png', **clip)['data']
        with open(path, 'wb') as file:
            file.write(base64.b64decode(data))
