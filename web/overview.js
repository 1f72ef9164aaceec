// SPDX-License-Identifier: MIT
// overview.js - how it goes: figures with their last minutes, two charts, who is busy, who waits, what happened lately.
import { h, name, setText, setAttr, keyed } from './dom.js';
import { count, digits, rate, bytes, percent, duration, limit } from './figures.js';
import { timeline, trace, bars, gauge, shares } from './charts.js';
import { events } from './events.js';
import { partsOf } from './rules.js';

const SPAN_MS = 300e3;
const OVER_MS = 5000; // rates are means over so long

const gaugeOf = field => (samples, i) => samples[i].is[field] ?? null;

// How much a counter grew each second, lately.
export const growth = (...fields) => (samples, i) => {
  let j = i;
  while (j > 0 && samples[i].at_ms - samples[j].at_ms < OVER_MS) j--;
  const ms = samples[i].at_ms - samples[j].at_ms;
  const sum = at => fields.reduce((total, field) => total + (samples[at].is[field] || 0), 0);
  return ms > 0 ? Math.max(0, (sum(i) - sum(j)) * 1000 / ms) : null;
};

const shareOf = (part, whole) => (samples, i) => {
  const a = growth(part)(samples, i), b = growth(...[].concat(whole))(samples, i);
  return b > 0 ? a / b : b === 0 ? 0 : null;
};

const DECISIONS = ['allowed', 'denied', 'failed']; // shadowed ones are among the allowed
const asPercent = n => n === null ? '–' : percent(n, 1);
const perSecond = n => n === null ? '–' : digits(n);

const KINDS = {
  crawl: {
    tiles: [
      ['Requests per second', growth('requests'), perSecond, 'flow', s => `${count(s.requests)} in all`],
      ['In flight', gaugeOf('in_flight'), count, 'calm', s => s.draining ? 'draining' : s.store_paused ? 'the store waits' : `for ${duration(s.elapsed_ms)}`],
      ['Rejected (429)', shareOf('rejected', 'requests'), asPercent, 'bad', s => `${count(s.rejected)} in all`],
      ['Queued', gaugeOf('queued'), count, 'hold', s => `${count(s.fetched)} fetched`],
      ['Hosts', gaugeOf('hosts'), count, 'calm', s => `${count(s.failed)} ${s.failed === 1 ? 'page' : 'pages'} failed`],
      ['Received per second', growth('bytes'), n => n === null ? '–' : bytes(n), 'flow', s => `${bytes(s.bytes)} in all`],
    ],
    charts: [
      { title: 'Requests per second', format: rate, least: 1, series: [{ label: 'sent', css: 'flow', area: true, of: growth('requests') },
        { label: 'rejected', css: 'bad', of: growth('rejected') }] },
      { title: 'In flight', format: count, least: 4, series: [{ label: '', css: 'calm', area: true, of: gaugeOf('in_flight') }] },
      { title: 'Queued', format: count, least: 10, series: [{ label: '', css: 'hold', area: true, of: gaugeOf('queued') }] },
    ],
  },
  serve: {
    tiles: [
      ['Decisions per second', growth(...DECISIONS), perSecond, 'flow', s => `${count(DECISIONS.reduce((sum, each) => sum + (s[each] || 0), 0))} in all`],
      ['Denied', shareOf('denied', DECISIONS), asPercent, 'bad', s => `${count(s.denied)} in all`],
      ['Denied in shadow', shareOf('shadowed', DECISIONS), asPercent, 'hold', s => `${count(s.shadowed)} in all`],
      ['Waiting in queues', gaugeOf('waiting'), count, 'hold', s => `${count(s.reserved || 0)} reserved`],
      ['Keys', gaugeOf('keys'), count, 'calm', s => `${count(s.evicted || 0)} evicted`],
      ['Internal errors', gaugeOf('failed'), count, 'bad', s => s.failed ? 'answered by on_error' : 'none'],
    ],
    charts: [
      { title: 'Decisions per second', format: rate, least: 1, series: [{ label: 'allowed', css: 'flow', area: true, of: growth('allowed') },
        { label: 'denied', css: 'bad', of: growth('denied') }, { label: 'shadow', css: 'hold', of: growth('shadowed') }] },
      { title: 'Waiting in queues', format: count, least: 4, series: [{ label: '', css: 'hold', area: true, of: gaugeOf('waiting') }] },
      { title: 'Keys', format: count, least: 10, series: [{ label: '', css: 'calm', area: true, of: gaugeOf('keys') }] },
    ],
  },
};

function tile([label, of, format, css, note]) {
  const line = trace(css), value = h('b'), small = h('small');
  return { element: h('div', { class: 'tile' }, h('span', {}, label), value, small, line.element), update(samples) {
    const points = samples.map((each, i) => [each.at_ms, of(samples, i)]);
    const last = points[points.length - 1][1];
    setText(value, format(last));
    setText(small, note(samples[samples.length - 1].is));
    line.update(points, SPAN_MS);
  } };
}

/* ---- hosts in short ---- */

function shortRow(isWaiting) {
  return each => {
    const minute = bars(each.starts || [], each.slice_s || 5), used = gauge();
    const first = h('a', { href: `#/host/${encodeURIComponent(each.host)}` }, name(each.host));
    const figure = h('span', { class: 'num' });
    const element = h('li', {}, h('i', { class: 'dot', 'aria-hidden': 'true' }), first,
      isWaiting ? null : used.element, isWaiting ? null : minute.element, figure);
    return { element, minute, used, figure };
  };
}

function updateShort(isWaiting) {
  return (row, each) => {
    setAttr(row.element, 'data-state', each.state);
    row.minute.update(each.starts || []);
    row.used.update(each.rate, each.allowed_rate);
    setText(row.figure, isWaiting ? each.wait_ms === null ? each.reason : `${each.reason} ${duration(each.wait_ms)}`
      : `${digits(each.rate)} of ${limit(each.allowed_rate)}`);
  };
}

function section(title, more, ...content) {
  return h('section', { class: 'card' }, h('h2', {}, title, more ? h('a', { href: more[0] }, more[1]) : null), content);
}

function crawlParts() {
  const states = shares(), busy = h('ul', { class: 'short' }), waiting = h('ul', { class: 'short waits' }), feed = events();
  const nobody = h('p', { class: 'none' }, 'No host waits.');
  const element = h('div', { class: 'columns' },
    h('div', {}, section('Hosts by state', ['#/hosts', 'All hosts'], states.element), section('Busiest', null, busy)),
    h('div', {}, section('Waiting longest', null, waiting, nobody), section('Lately', null, feed.element)));
  return { element, update(is) {
    const n = (is.busy && is.busy.states) || {};
    states.update([['active', 'flow', n.active || 0], ['held', 'hold', n.held || 0], ['paused', 'calm', n.paused || 0],
      ['idle', 'faint', n.idle || 0]], count);
    const held = ((is.waiting && is.waiting.hosts) || []).filter(each => each.state === 'held' || each.state === 'paused');
    keyed(busy, (is.busy && is.busy.hosts) || [], each => each.host, shortRow(false), updateShort(false));
    keyed(waiting, held, each => each.host, shortRow(true), updateShort(true));
    nobody.hidden = held.length > 0;
    feed.update((is.events && is.events.events) || []);
  } };
}

function serveParts() {
  const list = h('ul', { class: 'short wide' });
  const element = section('Rules', ['#/rules', 'All rules'], list);
  return { element, update(is) {
    keyed(list, (is.rules || []).slice(0, 12), each => each.name, each => {
      const parts = shares();
      return { parts, element: h('li', {}, h('a', { href: '#/rules' }, name(each.name)), parts.element) };
    }, (row, each) => row.parts.update(partsOf(each), count));
  } };
}

export function overview(app) {
  const kind = KINDS[app.hello && app.hello.kind] || KINDS.crawl;
  const tiles = kind.tiles.map(tile);
  const charts = kind.charts.map(chart => ({ series: chart.series, ...timeline({ ...chart, mostMs: SPAN_MS }) }));
  const parts = app.hello ? app.hello.kind === 'serve' ? serveParts() : crawlParts() : null;
  const element = h('div', { class: 'overview' }, h('h1', { class: 'unseen' }, 'Overview'), h('div', { class: 'tiles' }, tiles.map(each => each.element)),
    h('div', { class: 'charts' }, charts.map(each => h('section', { class: 'card' }, each.element))), parts && parts.element);
  return {
    element,
    query: () => ({ view: 'overview' }),
    sample() {
      tiles.forEach(each => each.update(app.samples));
      charts.forEach(each => each.update(app.samples.map((sample, i) => [sample.at_ms, each.series.map(line => line.of(app.samples, i))])));
    },
    update(is) { if (parts) parts.update(is); },
  };
}
