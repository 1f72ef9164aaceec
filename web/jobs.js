// SPDX-License-Identifier: MIT
// jobs.js - crawls of this state file, and how far each has come.
import { h, setText, setAttr, keyed } from './dom.js';
import { count, bytes, percent, day, duration } from './figures.js';

function make(app) {
  return each => {
    const status = h('span', { class: 'badge' }), when = h('p', { class: 'small' }), share = h('b'), why = h('p', { class: 'small' });
    const done = h('i', { class: 'flow' }), failed = h('i', { class: 'bad' }), eta = h('span');
    const bar = h('div', { class: 'progress', role: 'progressbar', 'aria-valuemin': 0, 'aria-valuemax': 100, 'aria-label': `Job ${each.id}` }, done, failed);
    const figures = ['Done', 'Failed', 'Queued', 'Received', 'Retries', '429'].map(label => [label, h('dd')]);
    const drain = h('button', { type: 'button', onclick: async () => {
      if (await app.confirm('Finish the requests in flight?', 'The crawl then stops. weir crawl --resume continues it.', 'Finish'))
        app.command({ ask: 'drain' }, 'The crawl finishes its requests in flight.');
    } }, 'Finish');
    const cancel = h('button', { type: 'button', class: 'danger', onclick: async () => {
      if (await app.confirm(`Cancel job ${each.id}?`, 'The job cannot be resumed. Queued URLs are not fetched.', 'Cancel the job'))
        app.command({ ask: 'cancel', job: each.id }, `Job ${each.id} is cancelled.`);
    } }, 'Cancel');
    const steer = h('div', { class: 'controls', role: 'group', 'aria-label': 'Controls' }, drain, cancel);
    const element = h('section', { class: 'card job' }, h('div', { class: 'head' }, h('h2', {}, `Job ${each.id} `, status), steer), when, why,
      h('div', { class: 'way' }, bar, share, eta), h('dl', { class: 'facts' }, figures.map(([label, dd]) => h('div', {}, h('dt', {}, label), dd))));
    return { element, status, when, why, share, eta, bar, done, failed, steer, drain, cancel, figures: figures.map(each => each[1]), seen: [] };
  };
}

// From how fast it went while it was looked at; nobody knows how much there is to be found.
function expected(row, ended, queued, at) {
  row.seen.push([at, ended]);
  if (row.seen.length > 60) row.seen.shift();
  const [then, before] = row.seen[0];
  const speed = (ended - before) / (at - then);
  return at - then > 4000 && speed > 0 && queued > 0 ? `about ${duration(queued / speed)} for the queued URLs` : '';
}

function update(app) {
  return (row, each) => {
    const ended = each.done + each.failed, whole = ended + each.queued;
    setText(row.status, each.running ? 'running' : each.status);
    setAttr(row.status, 'data-state', each.running ? 'active' : each.over ? 'idle' : 'held');
    setText(row.when, `started ${day(each.created_at_ms)}` + (each.running ? '' : `, last ${day(each.updated_at_ms)}`));
    setText(row.why, each.why);
    row.why.hidden = !each.why;
    setText(row.share, percent(ended, whole));
    row.done.style.width = `${whole ? 100 * each.done / whole : 0}%`;
    row.failed.style.width = `${whole ? 100 * each.failed / whole : 0}%`;
    setAttr(row.bar, 'aria-valuenow', whole ? Math.floor(100 * ended / whole) : 0);
    setText(row.eta, each.running ? expected(row, ended, each.queued, app.now()) : '');
    [each.done, each.failed, each.queued].forEach((n, i) => setText(row.figures[i], count(n)));
    setText(row.figures[3], bytes(each.bytes));
    setText(row.figures[4], count(each.retries));
    setText(row.figures[5], count(each.rejected));
    row.steer.hidden = each.over;
    row.drain.hidden = !each.running;
  };
}

export function jobs(app) {
  const list = h('div', { class: 'jobs' }), note = h('p', { class: 'note', hidden: true });
  return {
    element: h('div', {}, h('h1', { class: 'unseen' }, 'Jobs'), note, list),
    query: () => ({ view: 'jobs' }),
    update(is) {
      note.hidden = is.ok !== false;
      setText(note, is.error || '');
      if (is.jobs) keyed(list, [...is.jobs].reverse().slice(0, 100), each => each.id, make(app), update(app));
    },
  };
}
