// SPDX-License-Identifier: MIT
// stream.js - server-sent events by fetch, for a token travels in a header and never in an address. Comes back by itself.

const SILENCE_MS = 12e3, FIRST_MS = 400, LONGEST_MS = 8000;

// The whole events of `text`, and what is left of it.
export function parse(text) {
  const events = [];
  for (;;) {
    const end = text.indexOf('\n\n');
    if (end < 0) return [events, text];
    let kind = 'message';
    const data = [];
    for (const line of text.slice(0, end).split('\n')) {
      if (line.startsWith('event: ')) kind = line.slice(7);
      else if (line.startsWith('data: ')) data.push(line.slice(6));
    }
    text = text.slice(end + 2);
    if (data.length) events.push([kind, data.join('\n')]);
  }
}

export class Stream {
  // address() says what to ask for, token() with what; on: { event(kind, object), state(word, untilMs), missing() }.
  constructor(address, token, on) {
    Object.assign(this, { address, token, on, turn: 0, failures: 0, abort: null, timer: 0 });
    document.addEventListener('visibilitychange', () => document.hidden ? this.close('resting') : this.open());
    window.addEventListener('online', () => this.open());
  }

  close(word) {
    this.turn++;
    clearTimeout(this.timer);
    clearTimeout(this.watch);
    if (this.abort) this.abort.abort();
    this.abort = null;
    if (word) this.on.state(word);
  }

  // Anew, at once: something else is looked at, or the token has changed.
  open() {
    this.close();
    this.run(this.turn);
  }

  async run(turn) {
    let status = 0;
    try {
      const abort = this.abort = new AbortController();
      const token = this.token();
      this.listen(abort);
      const answer = await fetch(this.address(), { signal: abort.signal, cache: 'no-store', credentials: 'omit', redirect: 'error',
        headers: token ? { Authorization: `Bearer ${token}` } : {} });
      status = answer.status;
      if (answer.ok) await this.read(answer.body.getReader(), turn, abort);
    } catch { /* the network, or we ourselves */ }
    if (turn !== this.turn) return;
    this.again(turn, status);
  }

  listen(abort) {
    clearTimeout(this.watch);
    this.watch = setTimeout(() => abort.abort(), SILENCE_MS);
  }

  async read(reader, turn, abort) {
    const decoder = new TextDecoder();
    let text = '';
    for (;;) {
      const { value, done } = await reader.read();
      if (done || turn !== this.turn) return;
      this.listen(abort);
      this.failures = 0;
      const [events, rest] = parse(text + decoder.decode(value, { stream: true }));
      text = rest;
      for (const [kind, data] of events) this.on.event(kind, JSON.parse(data));
    }
  }

  again(turn, status) {
    clearTimeout(this.watch);
    if (status === 404) {
      this.on.missing();
      return;
    }
    if (status === 401 || status === 403) {
      this.on.state(status === 401 ? 'locked' : 'refused');
      return;
    }
    const wait = Math.min(LONGEST_MS, FIRST_MS * 2 ** this.failures++) * (0.8 + 0.4 * Math.random());
    this.on.state('lost', Date.now() + wait);
    this.timer = setTimeout(() => this.run(turn), wait);
  }
}
