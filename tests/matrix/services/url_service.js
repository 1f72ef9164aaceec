// SPDX-License-Identifier: MIT
// A service on Node's own server that parses requests with `new URL(target, 'http://' + Host)`. Argument: a loopback port.
'use strict';
const { listen, took } = require('./took.js');

const NO_HOST = 'base.invalid';

// Parses Authorization as most tutorials do: the second word, whatever the first is.
function credential(field) {
    const words = (field || '').split(' ');
    return words[1] ? (/^basic$/i.test(words[0]) ? 'basic:' + Buffer.from(words[1], 'base64').toString('latin1')
        : 'bearer:' + words[1]) : null;
}

function route(method, path) {
    if (path === '/login') return method === 'POST' ? 'login' : 'none';
    if (/^\/api\/items\/[^/]+$/.test(path)) return 'item';
    if (path.startsWith('/admin/')) return 'admin';
    if (path.startsWith('/static/')) return 'static';
    return path === '/' ? 'home' : 'none';
}

listen((request, response) => {
    let url;
    try {
        url = new URL(request.url, 'http://' + (request.headers.host || NO_HOST));
    } catch {
        response.writeHead(400).end();
        return;
    }
    took(response, {
        route: route(request.method, url.pathname), method: request.method,
        host: url.hostname === NO_HOST ? null : url.hostname, path: url.pathname,
        credential: credential(request.headers.authorization), key: request.headers['x-api-key'],
        ip: (request.headers['x-forwarded-for'] || '').split(',')[0].trim(),
    });
});
