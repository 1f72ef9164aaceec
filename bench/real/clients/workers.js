// SPDX-License-Identifier: MIT
'use strict';
const { load, loadModule } = require('../services/load');
const [base, flight, timeoutMs] = process.argv.slice(2);
let page = 0;

module.exports = {
  load, loadModule, flight: Number(flight), timeoutMs: Number(timeoutMs),
  // Starts the given number of loops, each with one request in flight, until the process is stopped.
  work: (fetchPage) => {
    const loop = async () => {
      for (;;) await fetchPage(`${base}${page++}`).catch(() => new Promise((done) => setImmediate(done)));
    };
    for (let i = 0; i < Number(flight); i++) loop();
  },
};
