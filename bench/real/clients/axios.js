// SPDX-License-Identifier: MIT
// axios with axios-retry (exponential delays, or Retry-After), behind a Bottleneck that limits the requests in flight.
'use strict';
const http = require('http');
const { load, flight, timeoutMs, work } = require('./workers');
const axios = load('axios');
const axiosRetry = load('axios-retry').default;
const Bottleneck = load('bottleneck');

const client = axios.create({ timeout: timeoutMs, httpAgent: new http.Agent({ keepAlive: true, maxSockets: flight }) });
axiosRetry(client, {
  retries: 5,
  retryDelay: axiosRetry.exponentialDelay,
  retryCondition: (error) => axiosRetry.isNetworkOrIdempotentRequestError(error) || error.response?.status === 429,
});
const limiter = new Bottleneck({ maxConcurrent: flight });
work((url) => limiter.schedule(() => client.get(url)));
