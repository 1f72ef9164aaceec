// SPDX-License-Identifier: MIT
// events.js - what happened, newest first.
import { h, name, keyed } from './dom.js';
import { clock, duration, rate } from './figures.js';

const WORDS = {
  rejected: ['bad', each => `rejected${each.status ? ` with ${each.status}` : ''}`],
  retry_after: ['hold', each => `asks to wait ${duration(each.wait_ms)}`],
  breaker: ['bad', each => each.breaker === 'open' ? `breaker open${each.wait_ms ? ` for ${duration(each.wait_ms)}` : ''}`
    : each.breaker === 'half_open' ? 'breaker tests one request' : 'breaker closed'],
  hopeless: ['bad', () => 'given up: too many rejections in a row'],
  paused: ['calm', () => 'paused'],
  resumed: ['flow', () => 'resumed'],
  pace: ['flow', each => each.wait_ms ? `set to ${rate(1000 / each.wait_ms)}` : 'pace as usual'],
  forgotten: ['calm', () => 'forgotten: starts again'],
};

// The server sends the last ones each time; equal neighbours are one line with a count.
export function events({ most = 14, withHost = true } = {}) {
  const list = h('ol', { class: 'events' });
  const none = h('p', { class: 'none' }, 'Nothing so far.');
  return { element: h('div', {}, list, none), update(all) {
    const lines = [];
    for (const each of [...all].reverse()) {
      const last = lines[lines.length - 1];
      if (last && last.host === each.host && last.event === each.event && last.status === each.status) last.times++;
      else if (lines.length === most) break;
      else lines.push({ ...each, times: 1 });
    }
    none.hidden = lines.length > 0;
    keyed(list, lines, each => `${each.number}:${each.times}`, each => {
      const [css, text] = WORDS[each.event] || ['calm', () => String(each.event)];
      return { element: h('li', { class: css }, h('time', {}, clock(each.at_ms)), h('i', { class: 'dot', 'aria-hidden': 'true' }),
        withHost ? h('a', { href: `#/host/${encodeURIComponent(each.host)}` }, name(each.host)) : null,
        h('span', {}, text(each), each.times > 1 ? h('small', {}, ` ×${each.times}`) : null)) };
    }, () => {});
  } };
}
