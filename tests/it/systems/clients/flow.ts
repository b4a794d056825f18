// A whole flow with the client that @hey-api/openapi-ts makes: node flow.js BASE CERTIFICATE KEY APPROVE
//
// From a first call without a PSU to a payment that is signed. The folder has the generated `client` and the interceptor of docs/tpp/signing.
// APPROVE is the program that is the PSU.
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { client } from './client/client.gen.js';
import { accountList, balanceList, paymentAuthorise, paymentCreate, paymentStatus } from './client/sdk.gen.js';
import { tppSignature } from './tppSignature.js';

const [base, certificate, key, approve] = process.argv.slice(2) as [string, string, string, string];
client.setConfig({ baseUrl: base, fetch: tppSignature(certificate, key) });

const headers = () => ({ 'X-Request-ID': randomUUID(), 'TPP-Redirect-URI': 'https://tpp.example/back' });

/** The PSU's part; gives the parameters of the redirect. */
function sca(link: string | undefined): URLSearchParams {
  if (link === undefined) throw new Error('there is no link');
  return new URL(execFileSync(approve, ['approve', link], { encoding: 'utf8' }).trim()).searchParams;
}

function found<T>(value: T | undefined, fault: unknown): T {
  if (value === undefined) throw new Error(JSON.stringify(fault));
  return value;
}

const refused = await accountList({ headers: headers() });
if (refused.error?.reason !== 'sca-required') throw new Error(JSON.stringify(refused));
const back = sca(refused.error._links?.scaRedirect?.href);
const psu = () => ({
  ...headers(),
  'PSU-ID': back.get('psu-id') ?? '',
  'TPP-Session-ID': back.get('tpp-session-id') ?? '',
  'PSU-IP-Address': '192.0.2.7',
});

const listed = await accountList({ headers: psu() });
const [first, second] = found(listed.data, listed.error).accounts;
if (first === undefined || second === undefined) throw new Error('there are no accounts');
const balances = await balanceList({ headers: psu(), path: { id: first.resourceId } });
console.log('balances', found(balances.data, balances.error).balances.length);

const product = 'norwegian-domestic-credit-transfers';
const created = await paymentCreate({
  headers: psu(),
  path: { 'payment-product': product },
  body: {
    instructedAmount: { amount: '10.00', currency: 'NOK' },
    creditorName: 'Eksempel AS',
    creditorAccount: { bban: second.bban ?? '', currency: 'NOK' },
    debtorAccount: { bban: first.bban ?? '', currency: 'NOK' },
  },
});
const path = { 'payment-product': product, 'payment-id': found(created.data, created.error).paymentId } as const;
const started = await paymentAuthorise({ headers: psu(), path });
sca(found(started.data, started.error)._links.scaRedirect?.href);
const status = await paymentStatus({ headers: psu(), path });
console.log('status', found(status.data, status.error).transactionStatus);
