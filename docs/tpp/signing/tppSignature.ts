// Signs each request of fetch: const signed = tppSignature("tpp.pem", "tpp.key"); await signed(url, { method, headers, body })
import { createHash, randomUUID, sign, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';

const SIGNED = ['date', 'digest', 'x-request-id', 'psu-id', 'psu-corporate-id', 'tpp-redirect-uri'];

export function tppSignature(certificateFile: string, keyFile: string): typeof fetch {
  const certificate = new X509Certificate(readFileSync(certificateFile));
  const key = readFileSync(keyFile);
  // Node writes an RDN on each line, the last one of RFC 2253 first.
  const issuer = certificate.issuer.split('\n').reverse().join(',');
  const keyId = `SN=${certificate.serialNumber},CA=${issuer}`;

  return async (input, init) => {
    const request = new Request(input, init);
    const body = Buffer.from(await request.clone().arrayBuffer());
    const { pathname, search } = new URL(request.url);
    const headers = request.headers;
    headers.set('Date', new Date().toUTCString());
    headers.set('X-Request-ID', headers.get('X-Request-ID') ?? randomUUID());
    if (body.length > 0) {
      headers.set('Digest', `SHA-256=${createHash('sha256').update(body).digest('base64')}`);
    }
    const names = SIGNED.filter((name) => headers.has(name));
    const lines = names.map((name) => `${name}: ${headers.get(name)}`);
    const text = [`(request-target): ${request.method.toLowerCase()} ${pathname}${search}`, ...lines].join('\n');
    const signature = sign('sha256', Buffer.from(text), key).toString('base64');
    const signed = ['(request-target)', ...names].join(' ');
    const value = `keyId="${keyId}",algorithm="rsa-sha256",headers="${signed}",signature="${signature}"`;
    const isAscii = /^[\x20-\x7e]*$/.test(value);
    headers.set('Signature', isAscii ? value : `=?utf-8?B?${Buffer.from(value).toString('base64')}?=`);
    headers.set('TPP-Signature-Certificate', certificate.raw.toString('base64'));
    return fetch(request);
  };
}
