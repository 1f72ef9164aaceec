// SPDX-License-Identifier: MIT
// host.js - one host: what it does, how its pace came about, what binds it, what was decided; and its controls.
import { h, name, setText, setAttr, keyed } from './dom.js';
import { count, rate, duration, limit, percent, bytes, ago, REASONS } from './figures.js';
import { timeline, bars } from './charts.js';
import { countdown } from './hosts.js';
import { events } from './events.js';

const SOURCES = { options: 'as configured', set: 'set by hand', learned: 'learned', robots: 'robots.txt', header: 'response header' };
const FACTS = [
  ['Requests', is => count(is.requests)], ['Fetched', is => count(is.fetched)], ['Rejected', is => `${count(is.rejected)} (${percent(is.rejected, is.requests)})`],
  ['Failed', is => count(is.failed)], ['Retries', is => count(is.retries)], ['Received', is => bytes(is.bytes)],
  ['Queued', is => count(is.queued)], ['In flight', is => is.cap === null ? count(is.in_flight) : `${count(is.in_flight)} of ${count(is.cap)}`],
  ['Latency', is => duration(is.latency_ms)], ['Breaker', is => is.breaker === 'open' ? `open for ${duration(is.breaker_ms)}` : String(is.breaker).replace('_', ' ')],
  ['Crawl-delay', is => is.robots_delay_ms ? duration(is.robots_delay_ms) : 'none'], ['Strategy', is => is.mode || '–'],
  ['Limit', is => is.limit ? `${is.limit}: ${is.limit_why}` : '–'],
];

function controls(app, key, get) {
  const act = request => done => app.command({ ...request, host: key }, done);
  const pause = h('button', { type: 'button', onclick: () => get().paused ? act({ ask: 'resume' })(`${key} is resumed.`) : act({ ask: 'pause' })(`${key} is paused.`) }, 'Pause');
  const set = h('button', { type: 'button', onclick: () => askPace(app, key, get()) }, 'Set pace');
  const usual = h('button', { type: 'button', onclick: () => act({ ask: 'set', interval_us: 0 })(`${key} has its usual pace.`) }, 'Usual pace');
  const forget = h('button', { type: 'button', class: 'danger', onclick: async () => {
    if (await app.confirm('Forget the learned pace?', `weir learns the pace of ${key} again. Crawl-delay and Retry-After stay in force.`, 'Forget'))
      act({ ask: 'forget' })(`The learned pace of ${key} is forgotten.`);
  } }, 'Forget');
  return { element: h('div', { class: 'controls', role: 'group', 'aria-label': 'Controls' }, pause, set, usual, forget), update(is) {
    setText(pause, is.paused ? 'Resume' : 'Pause');
    usual.hidden = !is.set_interval_ms;
  } };
}

async function askPace(app, key, is) {
  const now = is.set_interval_ms ? 1000 / is.set_interval_ms : '';
  const input = h('input', { name: 'rate', id: 'rate', type: 'number', min: '0.000001', max: '1000000', step: 'any', required: true, value: now });
  const data = await app.confirm('Set the pace', 'Maximum of requests per second. Crawl-delay, Retry-After and the learned pace still hold.', 'Set',
    [h('label', { for: 'rate' }, 'Requests per second'), input]);
  if (!data) return;
  const perSecond = Number(data.get('rate'));
  app.command({ ask: 'set', host: key, interval_us: Math.min(30 * 86400e6, Math.max(1, Math.round(1e6 / perSecond))) }, `At most ${rate(perSecond)} to ${key}.`);
}

function boundRow() {
  const parts = ['reason', 'about', 'value', 'wait', 'source'].map(key => [key, h('td', { class: key })]);
  return { element: h('tr', {}, parts.map(part => part[1])), ...Object.fromEntries(parts) };
}

function updateBound(row, each) {
  const words = REASONS[each.reason] || [each.reason, ''];
  setAttr(row.element, 'class', each.holds ? 'holds' : null);
  setText(row.reason, words[0]);
  setText(row.about, words[1] + (each.group ? ', shared with its group' : ''));
  setText(row.value, each.most !== undefined ? `${count(each.most)} at most` : each.value_ms ? duration(each.value_ms) : '');
  setText(row.wait, !each.holds ? 'free' : each.wait_ms === null ? 'until a response' : duration(each.wait_ms));
  setText(row.source, (SOURCES[each.source] || '') + (each.line ? `, line ${each.line}` : '') + (each.since_ms !== undefined ? `, ${ago(each.since_ms)}` : ''));
}

export function host(app, key) {
  let is = null;
  const steer = controls(app, key, () => is || {});
  const state = h('span', { class: 'badge' }), until = h('p', { class: 'until' });
  const facts = FACTS.map(([label]) => h('dd', { 'aria-label': label }));
  const pace = timeline({ title: 'Pace against limit (requests per second)', format: rate, height: 190, least: 0.2, mostMs: 600e3, series: [
    { label: 'sent', css: 'flow', area: true }, { label: 'limit', css: 'hold', dashed: true, format: limit }] });
  const latency = timeline({ title: 'Latency', format: duration, axis: duration, height: 130, least: 10, mostMs: 600e3, series: [{ label: 'mean', css: 'calm', area: true }] });
  const flights = timeline({ title: 'In flight', format: count, height: 130, least: 2, mostMs: 600e3, series: [
    { label: 'in flight', css: 'flow', area: true }, { label: 'most', css: 'hold', dashed: true }] });
  const bounds = h('tbody'), feed = events({ most: 30, withHost: false });
  const minute = bars(Array(12).fill(0), 5);
  const error = h('p', { class: 'note', hidden: true });
  const rest = h('div', {},
    h('div', { class: 'charts one' }, h('section', { class: 'card' }, pace.element)),
    h('div', { class: 'charts' }, h('section', { class: 'card' }, latency.element), h('section', { class: 'card' }, flights.element)),
    h('div', { class: 'columns' }, h('section', { class: 'card' }, h('h2', {}, 'Bounds on the next request'),
      h('div', { class: 'scroll' }, h('table', { class: 'bounds' }, h('caption', { class: 'unseen' }, 'Bounds'),
        h('thead', { class: 'unseen' }, h('tr', {}, ['Bound', 'Meaning', 'Value', 'Wait', 'Source'].map(each => h('th', { scope: 'col' }, each)))), bounds))),
      h('div', {}, h('section', { class: 'card' }, h('h2', {}, 'Figures', minute.element),
        h('dl', { class: 'facts' }, FACTS.map(([label], i) => h('div', {}, h('dt', {}, label), facts[i])))),
      h('section', { class: 'card' }, h('h2', {}, 'Decisions'), feed.element))));
  const element = h('div', { class: 'one-host' }, h('p', { class: 'back' }, h('a', { href: '#/hosts' }, '← Hosts')),
    h('div', { class: 'head' }, h('h1', {}, name(key), ' ', state), steer.element), until, error, rest);

  const rows = new Map(); // at_ms -> row, of the server's history and of what is seen since
  const draw = () => {
    const all = [...rows.values()].sort((a, b) => a[0] - b[0]);
    pace.update(all.map(row => [row[0], [row[1], row[2]]]));
    latency.update(all.map(row => [row[0], [row[4]]]));
    flights.update(all.map(row => [row[0], [row[3], row[5]]]));
  };

  function drawUntil() {
    const words = REASONS[is.reason];
    setText(until, !words || is.reason === 'none' ? 'The next request may start now.' : `Waits for ${words[0]} (${words[1]})${countdown(is, app) && ': ' + countdown(is, app)}.`);
  }

  return {
    element,
    query: () => ({ view: 'host', name: key }),
    update(answer) {
      const live = answer.host && answer.host.ok !== false ? answer.host.host : null;
      error.hidden = Boolean(live);
      rest.hidden = until.hidden = steer.element.hidden = !live;
      setText(error, live ? '' : (answer.host && answer.host.error) || 'this host is unknown');
      if (!live) return;
      is = { ...live, seenAt: app.now() };
      setText(state, is.state);
      setAttr(state, 'data-state', is.state);
      drawUntil();
      steer.update(is);
      FACTS.forEach(([, of], i) => setText(facts[i], of(is)));
      minute.update(is.starts || []);
      for (const row of answer.trail || []) rows.set(row[0], row);
      draw();
      keyed(bounds, (answer.why && answer.why.bounds) || [], each => `${each.reason} ${each.source} ${each.group}`, boundRow, updateBound);
      feed.update(((answer.events && answer.events.events) || []).filter(each => each.host === is.host));
    },
    tick() { if (is && is.wait_ms > 0) drawUntil(); },
  };
}
