// SPDX-License-Identifier: MIT
// Packages of npm are beside the build, in the folder that MODULES names.
'use strict';
const { createRequire } = require('module');
const load = createRequire(process.env.MODULES + '/');

module.exports = {
  load,
  // For packages that only `import` takes.
  loadModule: (name) => import(require('url').pathToFileURL(load.resolve(name))),
  slow: (latency, then) => setTimeout(then, Number(latency)),
};
