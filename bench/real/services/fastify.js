// SPDX-License-Identifier: MIT
// usage: node fastify.js PORT LATENCY_MS '{options of @fastify/rate-limit}'
'use strict';
const { load, slow } = require('./load');

const [port, latency, options] = process.argv.slice(2);
const app = load('fastify')({ keepAliveTimeout: 60000 });
app.register(load('@fastify/rate-limit'), JSON.parse(options)).after(() => {
  app.get('/*', (request, reply) => {
    slow(latency, () => reply.type('text/html').send('<p>served</p>\n'));
  });
});
app.listen({ port: Number(port), host: '127.0.0.1' });
