// Reads what the gateway admits, as Node does. See reader.py for lines and arguments; "fold" answers every fold to ASCII.
'use strict';

const querystring = require('querystring');
const readline = require('readline');
const { MIMEType } = require('util');

const [paths, names] = process.argv.slice(2, 4).map((list) => list.split(','));

function pick(value) {
  const found = {};
  for (const path of paths) {
    let at = value;
    for (const name of path.split('.')) {
      at = at !== null && typeof at === 'object' && Object.hasOwn(at, name) ? at[name] : undefined;
    }
    if (typeof at === 'string') found[path] = [at];
    else if (path === 'paymentIds' && Array.isArray(at)) found[path] = at.filter((one) => typeof one === 'string');
  }
  return found;
}

function parameters(all, place) {
  const found = {};
  for (const name of names) {
    const values = all(name);
    if (values.length) found[name] = [values.at(place)];
  }
  return found;
}

// What folds to ASCII: NFKC and both letter cases, without what is ignorable, as src/interface/fold.rs has it.
function folds() {
  const found = { unassigned: [] };
  const once = (text) => text.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFKC');
  for (let point = 0x80; point <= 0x10ffff; point += 1) {
    if (point >= 0xd800 && point < 0xe000) continue;
    const text = String.fromCodePoint(point);
    const folded = /\p{Default_Ignorable_Code_Point}/u.test(text) ? '' : point === 0x130 ? 'i' : once(once(text));
    if (/\p{Unassigned}/u.test(text)) found.unassigned.push(String(point));
    else if (/^[a-z0-9._-]*$/.test(folded)) found[point] = [folded];
  }
  return found;
}

const kinds = {
  body: (raw) => [['JSON.parse', () => pick(JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(raw)))]],
  query: (raw) => {
    const text = raw.toString('latin1');
    const read = querystring.parse(text);
    const listed = (name) => (Object.hasOwn(read, name) ? [read[name]].flat() : []);
    const search = new URLSearchParams(text);
    const url = new URL(`http://h/?${text}`).searchParams;
    const readers = { querystring: listed, URLSearchParams: (name) => search.getAll(name), URL: (name) => url.getAll(name) };
    return Object.entries(readers).flatMap(([name, all]) => [
      [`${name}, the first wins`, () => parameters(all, 0)],
      [`${name}, the last wins`, () => parameters(all, -1)],
    ]);
  },
  path: (raw) => [['URL', () => {
    const { pathname } = new URL(`http://h${raw.toString('latin1')}`);
    return { segments: pathname.split('/').slice(1).map(decodeURIComponent) };
  }]],
  host: (raw) => [['URL', () => {
    const { hostname, port } = new URL(raw.toString('latin1'));
    return { host: [hostname], port: port ? [port] : [] };
  }]],
  'content-type': (raw) => [['MIMEType', () => {
    const read = new MIMEType(raw.toString('latin1'));
    const charset = read.params.get('charset');
    const found = { media: [read.essence] };
    if (charset !== null) found.charset = [charset.toLowerCase().replace('utf8', 'utf-8')];
    return found;
  }]],
  fold: () => [['fold', folds]],
};

function answer(read) {
  try {
    return read();
  } catch (fault) {
    return { fault: [String(fault)] };
  }
}

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const [kind, raw] = line.split('\t');
  const readers = kinds[kind](Buffer.from(raw, 'base64')).map(([name, read]) => [`Node, ${name}`, answer(read)]);
  process.stdout.write(`${JSON.stringify(readers)}\n`);
});
