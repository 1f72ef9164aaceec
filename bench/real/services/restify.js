// SPDX-License-Identifier: MIT
// usage: node restify.js PORT LATENCY_MS '{options of its throttle}'
'use strict';
const { load, slow } = require('./load');
const restify = load('restify');

const [port, latency, options] = process.argv.slice(2);
const server = restify.createServer({ handleUncaughtExceptions: false });
server.use(restify.plugins.throttle({ setHeaders: true, ...JSON.parse(options) }));
server.get('/*', (request, response, next) => slow(latency, () => {
  response.sendRaw(200, '<p>served</p>\n', { 'Content-Type': 'text/html' });
  next();
}));
server.server.keepAliveTimeout = 60000;
server.listen(Number(port), '127.0.0.1');
