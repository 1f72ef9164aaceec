// SPDX-License-Identifier: MIT
// usage: node hapi.js PORT LATENCY_MS '{options of hapi-rate-limit}'
'use strict';
const { load, slow } = require('./load');

const [port, latency, options] = process.argv.slice(2);

async function serve() {
  const server = load('@hapi/hapi').server({ port: Number(port), host: '127.0.0.1' });
  await server.register({ plugin: load('hapi-rate-limit'), options: { pathLimit: false, ...JSON.parse(options) } });
  const handler = () => new Promise((done) => slow(latency, () => done('<p>served</p>\n')));
  server.route({ method: 'GET', path: '/{any*}', handler });
  server.listener.keepAliveTimeout = 60000;
  await server.start();
}

serve();
