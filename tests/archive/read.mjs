// SPDX-License-Identifier: MIT
// Reads WARC files with npm's warcio (of the webrecorder project) and prints each record as a line of
// JSON: its fields, the head and body of its message, and whether its length and digests are
// correct. The first argument is the folder of warcio, the others are the files.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, ...files] = process.argv.slice(2);
const from = createRequire(`${folder}/package.json`);
const { WARCParser } = await import(pathToFileURL(from.resolve('warcio')).href.replace(/index\.cjs$/, 'index.js'));

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

function sha1(...parts) {
  const hash = createHash('sha1');
  parts.forEach((part) => hash.update(part));
  const bits = [...hash.digest()].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  return 'sha1:' + bits.match(/.{5}/g).map((five) => LETTERS[parseInt(five, 2)]).join('');
}

function split(block) {
  const end = block.indexOf('\r\n\r\n');
  return end < 0 ? [block, Buffer.alloc(0)] : [block.subarray(0, end + 4), block.subarray(end + 4)];
}

for (const file of files) {
  const parser = new WARCParser(createReadStream(file), { keepHeadersCase: true, parseHttp: false });
  for await (const record of parser) {
    const block = Buffer.from(await record.readFully(false));
    const fields = Object.fromEntries(record.warcHeaders.headers);
    const [head, body] = split(block);
    const payload = record.warcHeader('WARC-Payload-Digest');
    console.log(JSON.stringify({
      file, version: record.warcHeaders.statusline, fields,
      head: head.toString('latin1'), body: body.toString('latin1'),
      length_ok: block.length === record.warcContentLength,
      block_ok: sha1(block) === record.warcHeader('WARC-Block-Digest'),
      payload_ok: record.warcType !== 'response' || sha1(body) === payload,
    }));
  }
}
