// Signs with npm's http-signature: node sign.js CERTIFICATE KEY < lines
//
// Each line of standard input is "name: value", in signing order; the first is the request target.
'use strict';

const { X509Certificate } = require('node:crypto');
const fs = require('node:fs');
const httpSignature = require('http-signature');

const [certificateFile, keyFile] = process.argv.slice(2);
const certificate = new X509Certificate(fs.readFileSync(certificateFile));
const lines = fs.readFileSync(0, 'utf8').split('\n').filter(Boolean).map((line) => {
  const at = line.indexOf(': ');
  return [line.slice(0, at), line.slice(at + 2)];
});
const [method, path] = Object.fromEntries(lines)['(request-target)'].split(' ');
// Node prints one RDN per line, escaped, the certificate's first one first; RFC 2253 begins with the last.
const issuer = certificate.issuer.split('\n').reverse().join(',');

const headers = Object.fromEntries(lines.filter(([name]) => !name.startsWith('(')));
const request = {
  method: method.toUpperCase(),
  path,
  headers,
  getHeader: (name) => headers[name.toLowerCase()],
  setHeader: (name, value) => { headers[name.toLowerCase()] = value; },
};
httpSignature.sign(request, {
  key: fs.readFileSync(keyFile),
  keyId: `SN=${certificate.serialNumber},CA=${issuer}`,
  algorithm: 'rsa-sha256',
  headers: lines.map(([name]) => name),
  authorizationHeaderName: 'x-signed',
});
console.log(`http-signature\t${headers['x-signed'].replace(/^Signature /, '')}`);
