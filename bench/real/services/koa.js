// SPDX-License-Identifier: MIT
// usage: node koa.js PORT LATENCY_MS '{options of koa-ratelimit}'
'use strict';
const { load, slow } = require('./load');
const Koa = load('koa');

const [port, latency, options] = process.argv.slice(2);
const app = new Koa();
app.silent = true;
app.use(load('koa-ratelimit')({ driver: 'memory', db: new Map(), id: (context) => context.ip, ...JSON.parse(options) }));
app.use((context) => new Promise((done) => slow(latency, () => {
  context.type = 'html';
  context.body = '<p>served</p>\n';
  done();
})));
app.listen(Number(port), '127.0.0.1').keepAliveTimeout = 60000;
