// SPDX-License-Identifier: MIT
// Reports how a Node service understood a request: one line of JSON, in X-Took, as the body, and in its log.
'use strict';
const http = require('http');

exports.took = (response, what) => {
    const short = { ...what, path: what.path.slice(0, 200) }; // proxies limit the size of response fields
    const line = JSON.stringify(short, (name, value) => (value === undefined ? null : value)).replace(
        /[^\x20-\x7e]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
    console.log(line);
    response.writeHead(200, { 'X-Took': line, 'Content-Length': line.length });
    response.end(line);
};

exports.listen = (answer) => {
    const server = http.createServer(answer);
    server.keepAliveTimeout = 600000;
    server.listen(Number(process.argv[2]), '127.0.0.1');
};
