// SPDX-License-Identifier: MIT
// app.js - the frame: which view is shown, the stream that feeds it, the token, commands.
import { h, setText, setAttr, shown, keyed } from './dom.js';
import { duration } from './figures.js';
import { Stream } from './stream.js';
import { overview } from './overview.js';
import { hosts } from './hosts.js';
import { host } from './host.js';
import { rules } from './rules.js';
import { jobs } from './jobs.js';

const KEPT = 300; // samples, as the server keeps them
const VIEWS = { overview, hosts, host, rules, jobs };
const TITLES = { overview: 'Overview', hosts: 'Hosts', rules: 'Rules', jobs: 'Jobs' };
const $ = id => document.getElementById(id);

const app = {
  hello: null,    // what the server is: { weir, kind, run, views, trusted, secured }
  samples: [],    // { number, at_ms, is: counters }, the oldest first
  skewMs: 0,      // the server's clock minus ours
  token: sessionStorage.getItem('weir-token') || '',
  command, confirm, refresh: () => stream.open(),
  now: () => Date.now() + app.skewMs,
  get trusted() { return Boolean(app.hello && app.hello.trusted); },
};

/* ---- which view ---- */

let view = null;
let shownRoute = '';

function route() {
  const [path, rest] = location.hash.replace(/^#\/?/, '').split(/\/(.*)/s);
  const known = Object.hasOwn(VIEWS, path || 'overview') && (!app.hello || path === 'host' || !path || app.hello.views.includes(path));
  let what = '';
  try {
    what = decodeURIComponent(rest || '');
  } catch { /* a broken address is none */ }
  return known ? [path || 'overview', what] : ['overview', ''];
}

function show() {
  const [kind, what] = route();
  const key = JSON.stringify([kind, what, app.hello && app.hello.kind]);
  if (key === shownRoute) return;
  shownRoute = key;
  view = VIEWS[kind](app, what);
  $('main').replaceChildren(view.element);
  document.title = `${shown(what) || TITLES[kind] || 'weir'} · weir`;
  drawTabs(kind);
  if (app.samples.length && view.sample) view.sample();
  if (JSON.stringify(view.query()) !== asked) stream.open();
}

function drawTabs(kind) {
  const names = (app.hello ? app.hello.views : ['overview']).filter(each => TITLES[each]);
  keyed($('tabs'), names, each => each, each => {
    const link = h('a', { href: each === 'overview' ? '#/' : `#/${each}` }, TITLES[each]);
    return { element: link };
  }, (row, each) => setAttr(row.element, 'aria-current', each === kind || each === 'hosts' && kind === 'host' ? 'page' : null));
}

/* ---- the stream ---- */

let asked = ''; // the view's query that the stream answers

function address() {
  asked = JSON.stringify(view.query());
  const query = new URLSearchParams(view.query());
  const last = app.samples[app.samples.length - 1];
  if (app.hello && last) {
    query.set('run', app.hello.run);
    query.set('since', last.number);
  }
  return `panel/stream?${query}`;
}

const stream = new Stream(address, () => app.token, {
  event(kind, data) {
    if (kind === 'hello') greet(data);
    else if (kind === 'sample') take([data]);
    else if (kind === 'view' && view && data.view === view.query().view) view.update(data.is);
    setLink('live');
  },
  state: setLink,
  missing: () => { location.hash = '#/'; }, // there is no such view here
});

function greet(hello) {
  const isOther = !app.hello || app.hello.run !== hello.run;
  if (isOther) app.samples = [];
  app.skewMs = hello.now_ms - Date.now();
  app.hello = hello;
  if (app.token && !hello.trusted) setToken('');
  take(hello.history);
  setText($('who'), hello.kind === 'serve' ? 'serve' : 'crawl');
  drawLock();
  if (isOther) show();
}

function take(samples) {
  const last = app.samples.length ? app.samples[app.samples.length - 1].number : 0;
  app.samples.push(...samples.filter(each => each.number > last));
  app.samples.splice(0, app.samples.length - KEPT);
  if (app.samples.length && view && view.sample) view.sample();
}

let link = ['connecting', 0];
function setLink(word, untilMs = 0) {
  link = [word, untilMs];
  drawLink();
}

function drawLink() {
  const [word, untilMs] = link;
  const left = Math.max(0, untilMs - Date.now());
  const words = { live: 'live', lost: left > 1500 ? `connection lost, retry in ${duration(left)}` : 'reconnecting', locked: 'needs the token',
    refused: 'refused', resting: 'resting', connecting: 'connecting' };
  setAttr($('link'), 'data-state', word);
  setText($('link').lastElementChild, words[word]);
  document.body.classList.toggle('stale', word !== 'live');
  if (word === 'locked' && !document.querySelector('dialog[open]')) askToken();
}

/* ---- the token ---- */

function setToken(token) {
  app.token = token;
  if (token) sessionStorage.setItem('weir-token', token);
  else sessionStorage.removeItem('weir-token');
}

function drawLock() {
  const secured = !app.hello || app.hello.secured;
  $('lock').hidden = !secured;
  setText($('lock'), app.trusted ? 'Lock controls' : 'Unlock controls');
  setAttr($('lock'), 'title', app.trusted ? 'Controls are on; forget the token' : 'Enter the token to use the controls');
  document.body.classList.toggle('trusted', app.trusted);
}

// A dialog with a form; resolves to what `read` makes of it, or null.
function dialog(title, body, action, read) {
  return new Promise(resolve => {
    const box = h('dialog', { 'aria-label': title });
    const form = h('form', { method: 'dialog' }, h('h2', {}, title), body,
      h('div', { class: 'actions' }, h('button', { type: 'button', class: 'plain', onclick: () => box.close() }, 'Cancel'),
        h('button', { type: 'submit', class: action.danger ? 'danger' : 'main' }, action.label)));
    let result = null;
    form.addEventListener('submit', () => { result = read ? read(form) : true; });
    box.addEventListener('close', () => { box.remove(); resolve(result); });
    box.append(form);
    document.body.append(box);
    box.showModal();
  });
}

function confirm(title, text, label, fields) {
  return dialog(title, [h('p', {}, text), fields], { label, danger: !fields }, fields ? form => new FormData(form) : null);
}

async function askToken() {
  const input = h('input', { name: 'token', type: 'password', autocomplete: 'off', spellcheck: 'false', required: true, id: 'token' });
  const token = await dialog('Token', [h('p', {}, 'Controls need the token that weir printed at its start, or that is in its token file. ' +
    'It stays in this tab.'), h('label', { for: 'token' }, 'Token'), input], { label: 'Unlock' }, form => new FormData(form).get('token').trim());
  if (!token) return false;
  setToken(token);
  const result = await post('panel/token', {});
  if (!result.ok) {
    setToken('');
    toast('This is not the token.', true);
    return false;
  }
  app.hello && (app.hello.trusted = true);
  drawLock();
  stream.open();
  return true;
}

/* ---- commands ---- */

async function post(path, request) {
  try {
    const answer = await fetch(path, { method: 'POST', body: JSON.stringify(request), credentials: 'omit', redirect: 'error',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${app.token}` } });
    const text = await answer.json();
    return { ...text, ok: answer.ok && text.ok !== false, status: answer.status };
  } catch {
    return { ok: false, error: 'weir cannot be reached' };
  }
}

// True if it was done. `done` is what is said then.
async function command(request, done) {
  if (!app.trusted && !await askToken()) return false;
  const result = await post('panel/command', request);
  if (result.status === 401) {
    setToken('');
    app.hello.trusted = false;
    drawLock();
  }
  toast(result.ok ? done : result.error || 'The request failed.', !result.ok);
  if (result.ok) stream.open();
  return result.ok;
}

function toast(text, isBad) {
  const box = h('div', { class: isBad ? 'toast bad' : 'toast' }, text);
  $('toasts').append(box);
  setTimeout(() => box.remove(), isBad ? 8000 : 4000);
}

/* ---- light and dark ---- */

const THEMES = { auto: 'Auto', light: 'Light', dark: 'Dark' };

function setTheme(theme) {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  localStorage.setItem('weir-theme', theme);
  setText($('theme'), `◐ ${THEMES[theme]}`);
  setAttr($('theme'), 'aria-label', `Colours: ${THEMES[theme]}`);
}

const themeNow = () => THEMES[localStorage.getItem('weir-theme')] ? localStorage.getItem('weir-theme') : 'auto';

/* ---- begin ---- */

function takeTokenOfAddress() {
  const token = /^#token=([\w.~-]+)$/.exec(location.hash);
  if (!token) return;
  setToken(token[1]);
  history.replaceState(null, '', location.pathname);
}

$('theme').addEventListener('click', () => {
  const names = Object.keys(THEMES);
  setTheme(names[(names.indexOf(themeNow()) + 1) % names.length]);
});
$('lock').addEventListener('click', () => {
  if (!app.trusted) {
    askToken();
    return;
  }
  setToken('');
  app.hello.trusted = false;
  drawLock();
});
document.addEventListener('keydown', event => {
  const isTyping = event.target.closest('input, textarea, select, dialog');
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const tab = $('tabs').children[Number(event.key) - 1];
  if (tab) tab.click();
  if (event.key === '/' && view.search) {
    event.preventDefault();
    view.search.focus();
  }
});
window.addEventListener('hashchange', () => {
  takeTokenOfAddress();
  show();
});
const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
setInterval(() => {
  drawLink();
  if (view && view.tick && link[0] === 'live') view.tick();
}, calm ? 1000 : 250);

takeTokenOfAddress();
setTheme(themeNow());
show();
