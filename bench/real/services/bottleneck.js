// SPDX-License-Identifier: MIT
// usage: node bottleneck.js PORT LATENCY_MS '{options of Bottleneck}'
// A service that is protected by a Bottleneck: a request that overflows its queue gets status 503.
'use strict';
const http = require('http');
const { load, slow } = require('./load');
const Bottleneck = load('bottleneck');

const [port, latency, options] = process.argv.slice(2);
const limiter = new Bottleneck({ ...JSON.parse(options), strategy: Bottleneck.strategy.OVERFLOW });
const work = () => new Promise((done) => slow(latency, done));
http.createServer({ keepAliveTimeout: 60000 }, (request, response) => {
  limiter.schedule(work).then(() => response.end('<p>served</p>\n'), () => {
    response.statusCode = 503;
    response.end('busy\n');
  });
}).listen(Number(port), '127.0.0.1');
