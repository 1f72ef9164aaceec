// SPDX-License-Identifier: MIT
// rules.js - rules of admission: what each allowed, denied and would have denied, and who asks most.
import { h, name, setText, setAttr, keyed } from './dom.js';
import { count, digits, duration, percent, ago } from './figures.js';
import { shares } from './charts.js';

// What a rule in shadow would have denied it has allowed: it counts as both, and here as what it would have been.
export const partsOf = each => [['allowed', 'flow', each.allowed - each.shadowed], ['denied', 'bad', each.denied],
  ['shadow', 'hold', each.shadowed], ['error', 'calm', each.failed]];
const sumOf = each => each.allowed + each.denied + each.failed;

function keyRow(app, rule) {
  return each => {
    const cells = Object.fromEntries(['denied', 'left', 'reset', 'idle'].map(key => [key, h('td', { class: 'num' })]));
    const reset = h('button', { type: 'button', class: 'small', onclick: () =>
      app.command({ ask: 'reset', rule, key: each.key }, `${each.key} is reset.`) }, 'Reset');
    setAttr(reset, 'aria-label', `Reset ${each.key}`);
    return { element: h('tr', {}, h('th', { scope: 'row' }, name(each.key)), Object.values(cells), h('td', {}, reset)), ...cells };
  };
}

function updateKey(row, each) {
  setText(row.denied, count(each.denied));
  row.denied.classList.toggle('bad', each.denied > 0);
  setText(row.left, each.remaining === undefined || each.remaining === null ? '–' : each.limit ? `${count(each.remaining)}/${count(each.limit)}` : count(each.remaining));
  setText(row.reset, each.reset_ms === undefined ? 'on release' : each.reset_ms ? duration(each.reset_ms) : 'now');
  setText(row.idle, ago(each.idle_ms));
}

// How a rule is shared with other processes.
function sharing(share) {
  if (!share) return [];
  return [share.batch ? `leased, ${count(share.batch)} at a time` : 'asks the store for each request', share.in_flight ? `${count(share.in_flight)} in flight here` : null,
    share.alone ? `${count(share.alone)} decided without the store` : null, share.owed ? `${count(share.owed)} not charged yet` : null];
}

function ruleCard(app) {
  return each => {
    const parts = shares(), keys = h('tbody'), none = h('p', { class: 'none' }, 'No keys yet.');
    const about = h('p', { class: 'about' }), figures = h('p', { class: 'small' }), mode = h('span', { class: 'badge' }), pace = h('span', { class: 'num' });
    const table = h('table', { class: 'grid' }, h('caption', { class: 'unseen' }, 'Top keys'), h('thead', {}, h('tr', {},
      ['Top keys', 'Denied', 'Left', 'Full in', 'Last seen', ''].map((title, i) => h('th', { scope: 'col', class: i && i < 5 ? 'num' : null }, title || h('span', { class: 'unseen' }, 'Reset'))))), keys);
    const element = h('section', { class: 'card rule' }, h('h2', {}, name(each.name), ' ', mode, pace), about, parts.element, figures,
      h('div', { class: 'scroll' }, table), none);
    return { element, parts, keys, none, about, figures, mode, table, pace };
  };
}

export function rules(app) {
  const list = h('div', { class: 'rules' }), file = h('p', { class: 'found' }), note = h('p', { class: 'note', hidden: true });
  const reload = h('button', { type: 'button', onclick: () => app.command({ ask: 'reload' }, 'The rules are reloaded.') }, 'Reload rules');
  const element = h('div', {}, h('h1', { class: 'unseen' }, 'Rules'), h('div', { class: 'tools' }, reload, file), note, list);
  let before = null;

  function updateRule(row, each) {
    const whole = sumOf(each);
    const old = before && before.counts.get(each.name);
    const seconds = before ? (app.now() - before.at) / 1000 : 0;
    setText(row.mode, [each.share && 'shared', each.shadow && 'shadow'].filter(Boolean).join(', '));
    row.mode.hidden = !each.shadow && !each.share;
    setText(row.pace, old !== undefined && seconds > 0.2 ? `${digits(Math.max(0, whole - old) / seconds)}/s` : '');
    setText(row.about, [each.match, each.by && `by ${each.by}`, each.limit].filter(Boolean).join(' · '));
    row.parts.update(partsOf(each), count);
    setText(row.figures, [`${percent(each.denied, whole)} denied`, each.waiting ? `${count(each.waiting)} waiting` : null,
      each.keys !== undefined ? `${count(each.keys)}${each.keys_max ? ` of ${count(each.keys_max)}` : ''} keys` : null,
      each.evicted ? `${count(each.evicted)} evicted` : null, ...sharing(each.share)].filter(Boolean).join(' · '));
    keyed(row.keys, each.top || [], top => top.key, keyRow(app, each.name), updateKey);
    row.none.hidden = (each.top || []).length > 0;
    row.table.hidden = !row.none.hidden;
    setAttr(row.element, 'data-shadow', each.shadow ? '' : null);
  }

  return {
    element,
    query: () => ({ view: 'rules' }),
    update(is) {
      const lost = is.store && !is.store.up ? `The store of shared limits cannot be reached: ${is.store.why || 'it has not answered yet'}.` : '';
      note.hidden = !is.error && !lost;
      setText(note, is.error || lost);
      if (!is.rules) return;
      keyed(list, is.rules, each => each.name, ruleCard(app), updateRule);
      setText(file, is.file);
      if (!before || app.now() - before.at > 4000)
        before = { at: app.now(), counts: new Map(is.rules.map(each => [each.name, sumOf(each)])) };
    },
  };
}
