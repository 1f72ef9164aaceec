// SPDX-License-Identifier: MIT
// hosts.js - the table of hosts: found, sorted, and each with its pace against its limit, why it waits and until when.
import { h, name, setText, setAttr, keyed, rowsOf } from './dom.js';
import { count, digits, duration, limit, REASONS } from './figures.js';
import { bars, gauge } from './charts.js';

const STEP = 50, MOST = 500;

// [title, order of the server's or null, class, what it is]
const COLUMNS = [
  ['Host', 'name', 'host', ''],
  ['State', null, 'state', ''],
  ['Pace of limit', 'rate', 'pace', 'requests per second in the last 30 s, and the allowed pace'],
  ['Last minute', null, 'minute', 'requests per 5 s'],
  ['Waits for', 'wait', 'wait', 'what the next request waits for, and how long'],
  ['In flight', null, 'num flight', 'and the maximum'],
  ['Queued', 'queue', 'num queued', ''],
  ['429', 'rejected', 'num rejected', 'rejected'],
  ['Failed', null, 'num failed', ''],
  ['Latency', null, 'num latency', 'mean'],
];

function makeRow(each) {
  const used = gauge(), minute = bars(each.starts || [], each.slice_s || 5);
  const cells = Object.fromEntries(['state', 'figure', 'until', 'reason', 'flight', 'queued', 'rejected', 'failed', 'latency']
    .map(key => [key, h('span')]));
  const cell = (css, label, ...content) => h('td', { class: css, 'data-label': label }, content);
  const element = h('tr', {},
    h('th', { scope: 'row', class: 'host' }, h('a', { href: `#/host/${encodeURIComponent(each.host)}` }, name(each.host))),
    cell('state', null, h('i', { class: 'dot', 'aria-hidden': 'true' }), cells.state),
    cell('pace', null, h('span', { class: 'pair' }, used.element, cells.figure)), cell('minute', null, minute.element),
    cell('wait', null, cells.reason, cells.until), cell('num flight', 'in flight', cells.flight), cell('num queued', 'queued', cells.queued),
    cell('num rejected', '429', cells.rejected), cell('num failed', 'failed', cells.failed), cell('num latency', 'latency', cells.latency));
  return { element, used, minute, ...cells };
}

export function countdown(each, app) {
  if (each.reason === 'none' || !each.reason) return '';
  if (each.wait_ms === null) return each.reason === 'paused' ? '' : 'until a response';
  const left = each.wait_ms - (app.now() - each.seenAt);
  return left > 0 ? duration(left) : 'now';
}

function updateRow(app) {
  return (row, each) => {
    row.each = each;
    setAttr(row.element, 'data-state', each.state);
    setText(row.state, each.state);
    row.used.update(each.rate, each.allowed_rate);
    setText(row.figure, `${digits(each.rate)} of ${limit(each.allowed_rate)}`);
    row.minute.update(each.starts || []);
    setText(row.reason, each.reason === 'none' ? '' : each.reason || '');
    setAttr(row.reason, 'title', (REASONS[each.reason] || [])[1]);
    setText(row.until, countdown(each, app));
    setText(row.flight, each.cap === null ? count(each.in_flight) : `${count(each.in_flight)}/${count(each.cap)}`);
    setText(row.queued, count(each.queued));
    setText(row.rejected, count(each.rejected));
    setText(row.failed, count(each.failed));
    row.rejected.parentElement.classList.toggle('bad', each.rejected > 0);
    row.failed.parentElement.classList.toggle('bad', each.failed > 0);
    setText(row.latency, each.requests ? duration(each.latency_ms) : '–');
  };
}

const wanted = { sort: 'wait', reverse: false, q: '', most: STEP }; // outlives the view

export function hosts(app) {
  const body = h('tbody');
  const search = h('input', { type: 'search', placeholder: 'Search hosts', 'aria-label': 'Search hosts', spellcheck: 'false', maxlength: 200 });
  search.value = wanted.q;
  const found = h('p', { class: 'found', role: 'status' });
  const more = h('button', { type: 'button', class: 'plain' }, 'Show more');
  const heads = COLUMNS.map(([title, sort, css, about]) => {
    const label = sort ? h('button', { type: 'button', onclick: () => order(sort) }, title) : title;
    return h('th', { scope: 'col', class: css, title: about || null }, label);
  });
  const choice = h('select', { 'aria-label': 'Sort by' }, COLUMNS.filter(column => column[1]).map(([title, sort]) =>
    h('option', { value: sort, selected: sort === wanted.sort }, title)));
  const element = h('div', { class: 'hosts' }, h('h1', { class: 'unseen' }, 'Hosts'),
    h('div', { class: 'tools' }, search, h('label', { class: 'sorts' }, 'Sort by ', choice), found),
    h('div', { class: 'scroll card' }, h('table', { class: 'grid' }, h('caption', { class: 'unseen' }, 'Hosts'), h('thead', {}, h('tr', {}, heads)), body)),
    more);

  function order(sort) {
    wanted.reverse = wanted.sort === sort ? !wanted.reverse : false;
    wanted.sort = sort;
    choice.value = sort;
    drawHeads();
    app.refresh();
  }

  // Names begin with a; all else with the most.
  function drawHeads() {
    COLUMNS.forEach(([, sort], i) => {
      const up = (sort === 'name') !== wanted.reverse;
      setAttr(heads[i], 'aria-sort', sort && sort === wanted.sort ? up ? 'ascending' : 'descending' : null);
    });
  }

  let timer = 0;
  search.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      wanted.q = search.value.trim();
      wanted.most = STEP;
      app.refresh();
    }, 200);
  });
  search.addEventListener('keydown', event => {
    if (event.key === 'Escape') search.blur();
  });
  choice.addEventListener('change', () => order(choice.value));
  more.addEventListener('click', () => {
    wanted.most = Math.min(MOST, wanted.most + 2 * STEP);
    app.refresh();
  });
  body.addEventListener('click', event => {
    const row = event.target.closest('tr');
    if (row && !event.target.closest('a') && !String(getSelection())) row.querySelector('a').click();
  });
  body.addEventListener('keydown', event => {
    const step = { ArrowDown: 'nextElementSibling', ArrowUp: 'previousElementSibling' }[event.key];
    const next = step && event.target.closest('tr')[step];
    if (!next) return;
    event.preventDefault();
    next.querySelector('a').focus();
  });
  drawHeads();
  more.hidden = true;
  return {
    element,
    search,
    query: () => ({ view: 'hosts', sort: wanted.sort, reverse: wanted.reverse ? 1 : 0, most: wanted.most, ...(wanted.q ? { q: wanted.q } : {}) }),
    update(is) {
      if (is.ok === false) {
        setText(found, is.error);
        return;
      }
      const at = app.now();
      is.hosts.forEach(each => { each.seenAt = at; });
      keyed(body, is.hosts, each => each.host, makeRow, updateRow(app));
      const told = is.hosts.length;
      setText(found, is.matched === 0 ? 'No host matches.' : is.matched > told ? `${count(told)} of ${count(is.matched)} hosts` : `${count(told)} host${told === 1 ? '' : 's'}`);
      more.hidden = is.matched <= told || wanted.most >= MOST;
    },
    tick() {
      for (const row of rowsOf(body).values()) if (row.each.wait_ms > 0) setText(row.until, countdown(row.each, app));
    },
  };
}
