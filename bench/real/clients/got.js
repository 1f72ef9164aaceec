// SPDX-License-Identifier: MIT
// The HTTP client got with its own retries, which obey Retry-After.
'use strict';
const http = require('http');
const { loadModule, flight, timeoutMs, work } = require('./workers');

loadModule('got').then(({ got }) => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: flight });
  work((url) => got(url, { agent: { http: agent }, retry: { limit: 5 }, timeout: { request: timeoutMs } }));
});
