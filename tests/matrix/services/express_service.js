// SPDX-License-Identifier: MIT
// An Express service that trusts the proxy before it ('trust proxy'). Argument: a loopback port.
'use strict';
const express = require('express');
const { listen, took } = require('./took.js');

const app = express();
app.set('trust proxy', true);

// Parses Authorization as passport-http-bearer and basic-auth do.
function credential(field) {
    const words = (field || '').split(' ');
    if (words.length === 2 && /^Bearer$/i.test(words[0])) return 'bearer:' + words[1];
    const basic = /^ *(?:[Bb][Aa][Ss][Ii][Cc]) +([A-Za-z0-9._~+/-]+=*) *$/.exec(field || '');
    return basic === null ? null : 'basic:' + Buffer.from(basic[1], 'base64').toString('latin1');
}

function answer(route) {
    return (request, response) => took(response, {
        route, method: request.method, host: request.hostname, path: request.path,
        credential: credential(request.get('authorization')), key: request.get('x-api-key'), ip: request.ip,
    });
}

app.post('/login', answer('login'));
app.all('/api/items/:item', answer('item'));
app.use('/admin', answer('admin'));
app.use('/static', answer('static'));
app.all('/', answer('home'));
app.use(answer('none'));
app.use((error, request, response, next) => answer('none')(request, response));
listen(app);
