#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page of the dashboard in a headless Chromium; its data come from a stub that reads a folder
of JSON.

usage: test_page.py PANEL_STUB WEB/INDEX.HTML
"""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

import sample
import show

TOKEN = 'a-token-of-the-test'
NAMES = ['www.example.org', 'docs.example.org', 'blog.example.org']
# Foreign text must not become an element or cause a request: this script records both.
WATCH = 'window.hacked = 0; window.breaches = []; document.addEventListener("securitypolicyviolation", e => breaches.push(e.violatedDirective + " " + e.blockedURI));'


class _Stub:
    """The stub of a dashboard that shows `files`; it runs until the `with` block ends."""

    def __init__(self, files, kind='crawl', views=('overview', 'hosts', 'jobs'), token=TOKEN, port=0):
        self.folder = tempfile.TemporaryDirectory(prefix='weir-panel-')
        self.kind, self.views, self.token, self.port = kind, views, token, port
        self.set(**files)

    def set(self, **files):
        for name, value in files.items():
            with open(f'{self.folder.name}/.new', 'w', encoding='utf-8') as file:
                json.dump(value, file)
            os.rename(f'{self.folder.name}/.new', f'{self.folder.name}/{name}')

    def start(self):
        self.process = subprocess.Popen([os.path.abspath(sys.argv[1]), self.folder.name, f'127.0.0.1:{self.port}', self.token, self.kind, *self.views],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        self.url = f'http://127.0.0.1:{self.port}/'

    def stop(self):
        self.process.stdin.close()
        status = self.process.wait(show.PATIENCE_S)
        self.process.stdout.close()
        assert status == 0, status

    def lines(self, name):
        try:
            with open(f'{self.folder.name}/{name}', encoding='utf-8') as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    def ask(self, method, path, body=None, **fields):
        return show.ask(self.port, method, path, body, **fields)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        self.folder.cleanup()


def _page(stub, at='', **how):
    return show.page(stub.url + at, before=WATCH, **how)


# ---- hostile text ----

HARMLESS = '''window.hacked === 0 && breaches.length === 0 && document.scripts.length === 1 && document.querySelectorAll("iframe, object, embed, form").length === 0
              && [...document.images].every(image => image.src.endsWith("/icon.svg"))
              && [...document.querySelectorAll("main a")].every(link => link.protocol === "http:" && link.host === location.host)
              && ![...document.querySelectorAll("*")].some(element => [...element.attributes].some(each => each.name.startsWith("on")))'''


def _harmless(page, expected):
    page.wait(f'document.querySelector("main").textContent.includes({json.dumps(expected)})')
    time.sleep(1.2)  # wait for another round of events
    assert page.run(HARMLESS), (page.run('breaches'), page.run('window.hacked'), page.run('document.querySelector("main").outerHTML')[:3000])
    text = page.run('document.querySelector("main").textContent')
    assert not re.search('[\x00-\x08\x0e-\x1f\u200b\u202e]', text), repr(text)
    strange = [url for url in page.fetched() if not re.match(r'http://127\.0\.0\.1:\d+/(panel/stream\?.*|[a-z]+\.(js|css|svg))?$', url)]
    assert strange == [], strange
    assert page.complaints() == [], page.complaints()


def hostile_names_of_hosts_and_jobs_run_no_script():
    with _Stub(sample.crawl(sample.HOSTILE)) as stub:
        for view in ('', '#/hosts', '#/jobs', '#/host/x'):
            with _page(stub, view) as page:
                _harmless(page, '"><img src=x onerror=')


def hostile_names_of_rules_and_keys_run_no_script():
    with _Stub(sample.daemon(sample.HOSTILE), kind='serve', views=('overview', 'rules')) as stub:
        for view in ('', '#/rules'):
            with _page(stub, view) as page:
                _harmless(page, '"><img src=x onerror=')


def hostile_page_addresses_run_no_script():
    with _Stub(sample.crawl(NAMES)) as stub:
        for at in ('#/host/%22%3E%3Cimg%20src=x%20onerror=window.hacked=1%3E', '#/host/%', '#token=<script>', '#/__proto__', '#/constructor/x'):
            with _page(stub, at) as page:
                page.wait('document.querySelectorAll("main *").length > 5')
                assert page.run(HARMLESS), at


def invisible_characters_in_names_are_shown_as_escapes():
    with _Stub(sample.crawl(sample.HOSTILE)) as stub, _page(stub, '#/hosts') as page:
        names = page.wait('(a => a.length > 8 && a)([...document.querySelectorAll("tbody bdi")].map(each => each.textContent))')
        assert r'\u202egpj.exe.example' in names and r'\u001b[31mred\u001b[0m.example' in names and r'zero\u200bwidth.example' in names, names


def content_security_policy_forbids_foreign_sources():
    with _Stub(sample.crawl(NAMES)) as stub, _page(stub) as page:
        page.run('(s => { s.textContent = "window.hacked = 1"; document.head.append(s); })(document.createElement("script"))'.replace('s.textContent', 'window.x'))
        thrown = page.run('try { document.body.innerHTML = "<b>x</b>"; "was taken" } catch (why) { why.name }')
        assert thrown == 'TypeError', thrown
        assert page.run('fetch("http://127.0.0.2:1/").then(() => "asked", why => why.name)') == 'TypeError'
        assert any('connect-src' in each for each in page.run('breaches')), page.run('breaches')
        for path in ('/', '/app.js', '/style.css', '/panel/token'):
            answer = stub.ask('GET', path)
            assert answer.getheader('x-content-type-options') == 'nosniff' and "default-src 'none'" in answer.getheader('content-security-policy'), path
            assert 'unsafe' not in answer.getheader('content-security-policy')


def dashboard_sources_set_no_html_and_are_small():
    folder, total = os.path.dirname(os.path.abspath(sys.argv[2])), 0
    for name in os.listdir(folder):
        if name == 'meson.build':
            continue
        with open(f'{folder}/{name}', encoding='utf-8') as file:
            text = file.read()
        total += len(text.encode())
        assert not re.search(r'innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|createContextualFragment|https?://(?!www\.w3\.org)', text), name
    assert 20000 < total < 100000, total


# ---- what is shown ----

def dashboard_shows_only_the_views_of_its_source():
    with _Stub(sample.crawl(NAMES)) as stub, _page(stub) as page:
        assert page.wait('(t => t.length === 3 && t)([...document.querySelectorAll("nav a")].map(a => a.textContent))') == ['Overview', 'Hosts', 'Jobs']
    with _Stub(sample.daemon(NAMES), kind='serve', views=('overview', 'rules')) as stub, _page(stub, '#/hosts') as page:
        assert page.wait('(t => t.length === 2 && t)([...document.querySelectorAll("nav a")].map(a => a.textContent))') == ['Overview', 'Rules']
        page.wait('document.querySelectorAll(".tile").length === 6')
        assert stub.ask('GET', '/panel/stream?view=hosts').status == 404


def overview_follows_its_source():
    files = sample.crawl(NAMES)
    with _Stub(files) as stub, _page(stub) as page:
        in_all = 'document.querySelector(".tile small").textContent'
        page.wait(f'{in_all} === "60 in all"')
        stub.set(sample={**files['sample'], 'requests': 1160, 'in_flight': 17})
        page.wait(f'{in_all} === "1\\u202f160 in all"')
        assert page.run('document.querySelectorAll(".tile b")[1].textContent') == '17'
        assert page.run('document.querySelector(".tile b").textContent') not in ('0', '–')
        page.wait('document.querySelector(".chart path.line").getAttribute("d").length > 20')


def hosts_are_searched_and_sorted_by_the_source():
    with _Stub(sample.crawl(NAMES)) as stub, _page(stub, '#/hosts') as page:
        page.wait('document.querySelectorAll("tbody tr").length === 3')
        assert page.run('document.querySelector("tbody .pace").textContent') == '1.50 of 2/s'
        assert 'pace' in page.run('document.querySelector("tbody .wait").textContent')
        page.press('/')
        page.write('input[type=search]', 'a&b=ö%')
        page.click('th.queued button')
        page.wait('document.querySelector("th.queued").getAttribute("aria-sort") === "descending"')
        page.click('th.queued button')
        page.wait('document.querySelector("th.queued").getAttribute("aria-sort") === "ascending"')
        show.until(lambda: 'view=hosts&sort=queue&reverse=1&most=50&q=a%26b%3D%C3%B6%25' in page.fetched()[-1])
        page.wait('document.querySelector("#link").dataset.state === "live"')


def remaining_waits_are_shown_with_their_reason():
    files = sample.crawl(NAMES)
    files['hosts'] = {**sample.hosts(NAMES[:1]), 'hosts': [sample.host('www.example.org', reason='retry_after', state='held', wait_ms=90000)]}
    with _Stub(files) as stub, _page(stub, '#/hosts') as page:
        first = page.wait('document.querySelector("tbody .wait span + span").textContent')
        assert first.startswith('1\u202fmin'), first
        page.run('new Promise(done => setTimeout(done, 300))')
        assert page.run('document.querySelector("tbody .wait span").textContent') == 'retry_after'


# ---- controls ----

def commands_need_token_content_type_and_same_origin():
    with _Stub(sample.crawl(NAMES)) as stub:
        body = json.dumps({'ask': 'pause', 'host': 'www.example.org'})
        good = {'Content_Type': 'application/json', 'Authorization': f'Bearer {TOKEN}'}
        for wrong in ({**good, 'Authorization': 'Bearer x'}, {**good, 'Authorization': TOKEN}, {'Content_Type': 'application/json'},
                      {**good, 'Authorization': f'Bearer {TOKEN}x'}, {**good, 'Authorization': 'Bearer '}):
            assert stub.ask('POST', '/panel/command', body, **wrong).status == 401, wrong
        assert stub.ask('POST', '/panel/command', body, **{**good, 'Content_Type': 'text/plain'}).status == 415
        assert stub.ask('POST', '/panel/command', body, **good, Origin='http://evil.example').status == 403
        assert stub.ask('POST', '/panel/command', body, **good, Sec_Fetch_Site='cross-site').status == 403
        answer = stub.ask('GET', '/panel/command', None, **good)
        assert (answer.status, answer.getheader('Allow')) == (405, 'POST')
        assert stub.lines('commands') == []
        assert stub.ask('POST', '/panel/command', body, **good).status == 200
        assert stub.lines('commands') == [body]


def foreign_host_names_of_this_machine_are_refused():
    with _Stub(sample.crawl(NAMES)) as stub:
        for name in ('evil.example', 'localhost.evil.example', '127.0.0.1.evil.example', f'evil.example:{stub.port}'):
            for path in ('/', '/app.js', '/panel/stream', '/panel/token'):
                assert stub.ask('GET', path, Host=name).status == 403, (name, path)
        for name in (f'localhost:{stub.port}', '127.0.0.1', '[::1]:80'):
            assert stub.ask('GET', '/', Host=name).status == 200, name
        assert stub.ask('GET', '/panel/stream', Origin='http://evil.example').status == 403
        assert stub.ask('GET', '/panel/stream', Origin='null').status == 403


def dashboard_without_a_token_has_no_controls():
    with _Stub(sample.crawl(NAMES), token='') as stub, _page(stub, '#/hosts') as page:
        assert page.run('document.querySelector("#lock").hidden')
        for token in ('', 'x'):
            assert stub.ask('POST', '/panel/command', '{}', Content_Type='application/json', Authorization=f'Bearer {token}').status == 403


def wrong_token_is_reported():
    with _Stub(sample.crawl(NAMES)) as stub, _page(stub) as page:
        page.click('#lock')
        page.write('#token', 'wrong')
        page.press('Enter')
        page.wait('document.querySelector("#toasts").textContent.includes("not the token")')
        assert not page.run('document.body.classList.contains("trusted")')
        assert page.run('sessionStorage.getItem("weir-token")') is None


def token_in_the_address_unlocks_and_is_removed_from_it():
    with _Stub(sample.crawl(NAMES)) as stub, _page(stub, f'#token={TOKEN}') as page:
        page.wait('document.body.classList.contains("trusted")')
        assert TOKEN not in page.run('location.href')
        assert not any(TOKEN in url for url in page.fetched()[1:])


def host_page_pauses_paces_and_forgets_the_host():
    with _Stub(sample.crawl(NAMES)) as stub, _page(stub, '#/host/www.example.org') as page:
        page.wait('!document.querySelector(".controls").hidden')
        page.click('.controls button')
        page.write('#token', TOKEN)  # the page asks for the token at the first command
        page.press('Enter')
        show.until(lambda: len(stub.lines('commands')) == 1)
        page.click('.controls button:nth-child(2)')
        page.write('#rate', '4')
        page.press('Enter')
        show.until(lambda: len(stub.lines('commands')) == 2)
        page.click('.controls .danger')
        page.click('dialog .danger')
        show.until(lambda: len(stub.lines('commands')) == 3)
        assert [json.loads(line) for line in stub.lines('commands')] == [
            {'ask': 'pause', 'host': 'www.example.org'}, {'ask': 'set', 'host': 'www.example.org', 'interval_us': 250000},
            {'ask': 'forget', 'host': 'www.example.org'}]


def rules_page_resets_keys_and_reloads_rules():
    with _Stub(sample.daemon(sample.HOSTILE[:1]), kind='serve', views=('overview', 'rules')) as stub, _page(stub, '#/rules') as page:
        page.wait('document.querySelectorAll(".rule tbody tr").length === 1')
        show.unlock(page, TOKEN)
        page.click('.tools button')
        show.until(lambda: len(stub.lines('commands')) == 1)
        page.click('.rule tbody button')
        show.until(lambda: len(stub.lines('commands')) == 2)
        assert [json.loads(line) for line in stub.lines('commands')] == [
            {'ask': 'reload'}, {'ask': 'reset', 'rule': sample.HOSTILE[0], 'key': sample.HOSTILE[0]}]


# ---- reconnecting ----

def dashboard_reconnects_after_the_server_was_away():
    files = sample.crawl(NAMES)
    stub = _Stub(files)
    with stub:
        with _page(stub) as page:
            page.wait('document.querySelector(".tile small").textContent === "60 in all"')
            stub.stop()
            page.wait('document.querySelector("#link").dataset.state === "lost"')
            assert page.run('document.body.classList.contains("stale")')
            stub.set(sample={**files['sample'], 'requests': 7})
            stub.start()
            page.wait('document.querySelector("#link").dataset.state === "live"')
            page.wait('document.querySelector(".tile small").textContent === "7 in all"')
            page.wait('!document.body.classList.contains("stale")')


def history_is_shown_to_a_viewer_who_connects_later():
    files = sample.crawl(NAMES)
    with _Stub(files) as stub:
        time.sleep(3.2)
        with _page(stub) as page:
            drawn = page.wait('(d => d.includes("L") && d)(document.querySelector(".chart path.line").getAttribute("d"))')
            assert drawn.count('L') >= 1, drawn


# ---- many viewers ----

def view_with_many_viewers_is_queried_once():
    with _Stub(sample.crawl(NAMES)) as stub:
        viewers, began = [], time.monotonic()
        for _ in range(40):
            viewer = socket.create_connection(('127.0.0.1', stub.port))
            viewer.sendall(f'GET /panel/stream?view=hosts HTTP/1.1\r\nHost: 127.0.0.1:{stub.port}\r\n\r\n'.encode())
            viewers.append(viewer)
        show.until(lambda: len(stub.lines('asked')) >= 5)
        asked, seconds = len(stub.lines('asked')), time.monotonic() - began
        assert asked <= 2 * seconds + 3, (asked, seconds)
        for viewer in viewers:
            viewer.settimeout(show.PATIENCE_S)
            text = b''
            while b'event: sample' not in text or b'event: view' not in text:
                text += viewer.recv(65536)
            viewer.close()


def number_of_viewers_is_limited():
    with _Stub(sample.crawl(NAMES)) as stub:
        viewers = []
        for _ in range(256):
            viewer = socket.create_connection(('127.0.0.1', stub.port))
            viewer.sendall(b'GET /panel/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
            viewers.append(viewer)
        for viewer in viewers:
            viewer.settimeout(show.PATIENCE_S)
            assert viewer.recv(15).startswith(b'HTTP/1.1 200')
        assert stub.ask('GET', '/panel/stream').status == 503
        for viewer in viewers:
            viewer.close()
        show.until(lambda: stub.ask('GET', '/panel/stream').status == 200)


# ---- accessibility ----

CONTRAST = '''(() => {
  const parse = text => { const c = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    c.fillStyle = text; c.fillRect(0, 0, 1, 1); const d = c.getImageData(0, 0, 1, 1).data; return [d[0], d[1], d[2], d[3] / 255]; };
  const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const light = c => { const f = c.slice(0, 3).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * f[0] + 0.7152 * f[1] + 0.0722 * f[2]; };
  const ground = element => { const own = parse(getComputedStyle(element).backgroundColor);
    return own[3] === 1 || !element.parentElement ? over(own, [255, 255, 255, 1]) : over(own, ground(element.parentElement)); };
  const bad = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.getClientRects().length || element.closest(".unseen, .skip, noscript, option")) continue;
    const style = getComputedStyle(element), back = ground(element);
    const front = over(parse(element.namespaceURI.includes("svg") ? style.fill : style.color), back);
    const [a, b] = [light(front), light(back)], ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push([element.tagName, element.className.baseVal ?? element.className, element.textContent.slice(0, 30), ratio.toFixed(2)]);
  }
  return bad;
})()'''


def text_contrast_is_sufficient_in_light_and_dark():
    crawl, daemon = sample.crawl(NAMES), sample.daemon(NAMES)
    crawl['hosts']['hosts'][0].update(state='held', reason='retry_after', wait_ms=60000, failed=3)
    crawl['hosts']['hosts'][1].update(state='idle', reason='none')
    with _Stub({**daemon, **crawl}, views=('overview', 'hosts', 'jobs', 'rules')) as stub:
        for dark in (False, True):
            for view in ('', '#/hosts', '#/host/www.example.org', '#/jobs', '#/rules'):
                with _page(stub, view, dark=dark) as page:
                    page.wait('document.querySelectorAll("main bdi, main dd").length > 0')
                    time.sleep(0.3)
                    assert page.run(CONTRAST) == [], (view, dark, page.run(CONTRAST))


def dashboard_fits_the_width_of_a_small_phone():
    names = ['a-very-long-name-of-a-host-that-goes-on-and-on.some-department.example.ac.uk', *NAMES]
    with _Stub({**sample.daemon(names), **sample.crawl(names)}, views=('overview', 'hosts', 'jobs', 'rules')) as stub:
        for view in ('', '#/hosts', f'#/host/{names[0]}', '#/jobs', '#/rules'):
            with _page(stub, view, width=340, height=700, phone=True) as page:
                page.wait('document.querySelectorAll("main bdi, main dd").length > 0')
                assert page.run('document.documentElement.scrollWidth') <= 340, view
                cut = '[...document.querySelectorAll("main button")].filter(each => each.getBoundingClientRect().right > innerWidth).length'
                assert page.run(cut) == 0, view


def keyboard_reaches_everything():
    with _Stub(sample.crawl(NAMES)) as stub, _page(stub, '#/hosts') as page:
        page.wait('document.querySelectorAll("tbody tr").length === 3')
        page.press('2')
        page.press('Tab')
        assert page.run('document.activeElement.className') == 'skip'
        page.press('/')
        page.wait('document.activeElement.type === "search"')
        page.press('Escape')
        page.run('document.querySelector("tbody a").focus()')
        page.press('ArrowDown')
        assert page.run('document.activeElement.textContent') == 'docs.example.org'
        time.sleep(1.3)  # rows are redrawn, and the focus must stay
        assert page.run('document.activeElement.textContent') == 'docs.example.org'
        page.press('Enter')
        page.wait('location.hash === "#/host/docs.example.org"')
        # the chart has points to step through
        page.wait('/[0-9]/.test(document.querySelector(".one-host .legend b")?.textContent)')
        page.run('document.querySelector(".one-host svg[tabindex]").focus()')
        page.press('ArrowLeft')
        page.wait('document.querySelector(".one-host .when").textContent !== ""')
        assert page.run('getComputedStyle(document.activeElement).outlineStyle') == 'solid'


def dashboard_has_no_animation_if_reduced_motion_is_set():
    with _Stub(sample.crawl(NAMES)) as stub:
        with _page(stub, '#/hosts', calm=True) as page:
            page.wait('document.querySelectorAll("tbody tr").length === 3')
            assert page.run('document.getAnimations().length') == 0
            assert page.run('getComputedStyle(document.querySelector(".gauge i")).transitionDuration') == '0s'
        with _page(stub, '#/hosts') as page:
            assert page.wait('document.getAnimations().length') > 0


if __name__ == '__main__':
    show.main()
