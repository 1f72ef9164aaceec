// SPDX-License-Identifier: MIT
// What a service on Node took a request for, as it tells it: one line of JSON, in X-Took and as the body.
'use strict';
const http = require('http');

let count = 0;

exports.took = (response, what) => {
    const line = JSON.stringify({ ...what, count: ++count }, (name, value) => (value === undefined ? null : value)).replace(
        /[^\x20-\x7e]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
    response.writeHead(200, { 'X-Took': line, 'Content-Length': line.length });
    response.end(line);
};

exports.listen = (answer) => {
    const server = http.createServer(answer);
    server.keepAliveTimeout = 600000;
    server.listen(Number(process.argv[2]), '127.0.0.1');
};
