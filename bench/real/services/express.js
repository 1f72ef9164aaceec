// SPDX-License-Identifier: MIT
// usage: node express.js PORT LATENCY_MS '[{"kind": "limit", …}, {"kind": "slow", …}]'
'use strict';
const { load, slow } = require('./load');
const express = load('express');

const [port, latency, options] = process.argv.slice(2);
const makers = {
  limit: (words) => load('express-rate-limit').rateLimit({ ...words, validate: false }),
  slow: ({ stepMs, ...words }) => load('express-slow-down').slowDown(
    { ...words, delayMs: (used) => (used - words.delayAfter) * stepMs, validate: false }),
};
const app = express();
for (const { kind, ...words } of JSON.parse(options)) app.use(makers[kind](words));
app.use((request, response) => slow(latency, () => response.type('html').send('<p>served</p>\n')));
app.listen(Number(port), '127.0.0.1').keepAliveTimeout = 60000;
