// SPDX-License-Identifier: MIT
// Loads npm packages from the folder that MODULES names.
'use strict';
const { createRequire } = require('module');
const load = createRequire(process.env.MODULES + '/');

module.exports = {
  load,
  // For packages that can only be loaded with `import`.
  loadModule: (name) => import(require('url').pathToFileURL(load.resolve(name))),
  slow: (latency, then) => setTimeout(then, Number(latency)),
};
