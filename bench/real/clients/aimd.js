// SPDX-License-Identifier: MIT
// AIMD pacing: the rate grows by 1/s in each second without a refusal; a refusal halves it, at most once a second.
'use strict';
const http = require('http');
const { flight, timeoutMs, work } = require('./workers');

const MOST = 500;
const agent = new http.Agent({ keepAlive: true, maxSockets: flight });
let rate = 1;
let wasRefused = false;
let cutAt = 0;
let last = 0;

function set(next) {
  rate = Math.min(MOST, Math.max(0.1, next));
}

function cut() {
  wasRefused = true;
  if (Date.now() - cutAt < 1000) return;
  cutAt = Date.now();
  set(rate / 2);
}

setInterval(() => {
  if (!wasRefused) set(rate + 1);
  wasRefused = false;
}, 1000);

const get = (url) => new Promise((done, fail) => {
  const request = http.get(url, { agent, timeout: timeoutMs }, (response) => {
    if (response.statusCode === 403 || response.statusCode === 429 || response.statusCode >= 500) cut();
    response.resume().on('end', done).on('error', fail);
  });
  request.on('timeout', () => request.destroy(new Error('timeout')));
  request.on('error', (error) => { cut(); fail(error); });
});
// The rate may change while a request waits: each waiting request checks again until it is the first that is due.
async function turn() {
  while (Date.now() < last + 1000 / rate) await new Promise((done) => setTimeout(done, last + 1000 / rate - Date.now()));
  last = Math.max(last + 1000 / rate, Date.now() - 20);
}

work((url) => turn().then(() => get(url)));
