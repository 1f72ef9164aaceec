// SPDX-License-Identifier: MIT
// usage: node flexible.js PORT LATENCY_MS '{"limits": [{"points": 20, "duration": 2}], "burst": {…}, "fields": true}'
// With "fields", every response has the fields of the library's documentation, including Retry-After.
'use strict';
const http = require('http');
const { load, slow } = require('./load');
const { RateLimiterMemory, BurstyRateLimiter } = load('rate-limiter-flexible');

const [port, latency, text] = process.argv.slice(2);
const { limits, burst, fields } = JSON.parse(text);
const limiters = limits.map((words, i) => new RateLimiterMemory({ ...words, keyPrefix: `limit${i}` }));
if (burst) limiters[0] = new BurstyRateLimiter(limiters[0], new RateLimiterMemory({ ...burst, keyPrefix: 'burst' }));

function name(response, result, limit) {
  if (!fields || !result.msBeforeNext) return;
  response.setHeader('Retry-After', result.msBeforeNext / 1000);
  response.setHeader('X-RateLimit-Limit', limit);
  response.setHeader('X-RateLimit-Remaining', result.remainingPoints);
  response.setHeader('X-RateLimit-Reset', new Date(Date.now() + result.msBeforeNext));
}

http.createServer({ keepAliveTimeout: 60000 }, async (request, response) => {
  try {
    for (const [i, limiter] of limiters.entries()) {
      name(response, await limiter.consume(request.socket.remoteAddress), limits[i].points);
    }
    slow(latency, () => response.end('<p>served</p>\n'));
  } catch (result) {
    name(response, result, limits[0].points);
    response.statusCode = 429;
    response.end('Too Many Requests\n');
  }
}).listen(Number(port), '127.0.0.1');
