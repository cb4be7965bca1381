/** Forbidden addresses of webhooks, in every spelling and from every source: the service opens no connection to them. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { parseNetworks } from '../../src/webhooks/address-policy.js';
import { createResolve, type Resolve } from '../../src/webhooks/names.js';
import { createSender } from '../../src/webhooks/request.js';
import { useService } from '../support/fixture.js';

const REFUSED = 'the address is not public, and not in WEBHOOK_NETWORKS';
const NAME = 'rebinding.example';
/** 127.0.0.1 in every spelling that a parser of URLs takes for it. */
const LOOPBACK = [
  '127.0.0.1',
  '127.0.0.1.',
  '127.1',
  '127.0.1',
  '127.000.000.001',
  '127.127.127.127',
  '127.255.255.254',
  '2130706433',
  '017700000001',
  '0x7f000001',
  '0X7F000001',
  '0x7f.1',
  '0x7f.0.0.1',
  '0x7F.0x0.0x0.0x1',
  '0177.1',
  '0177.0.0.1',
  '0177.0.0.01',
  '00177.0.0.1',
  '127.0x1',
  '127.0.0x1',
  '127.1.',
  '0x7f.0.1',
  '%31%32%37.0.0.1',
  '１２７.０.０.１',
  '①②⑦.⓪.⓪.①',
  '127。0。0。1',
  '127．0．0．1',
  '127｡0｡0｡1',
  '１２７。１',
  '𝟭𝟮𝟳.𝟬.𝟬.𝟭',
  '127.0.0.1%2e',
  '[::1]',
  '[0:0:0:0:0:0:0:1]',
  '[0000::0001]',
  '[::127.0.0.1]',
  '[::7f00:1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::FFFF:7F00:0001]',
  '[0:0:0:0:0:ffff:127.0.0.1]',
  '[::ffff:0:127.0.0.1]',
  'localhost',
  'LOCALHOST',
  'ｌｏｃａｌｈｏｓｔ',
  'ⓛⓞⓒⓐⓛⓗⓞⓢⓣ',
  'user.example@127.0.0.1',
  '127.0.0.1\\@public.example',
];
const OTHERS = [
  // This host, and private networks.
  '0.0.0.0',
  '0',
  '0x0',
  '0.1.2.3',
  '[::]',
  '[::ffff:0:0]',
  '10.0.0.1',
  '10.1',
  '012.1.2.3',
  '0xa000001',
  '167772161',
  '172.16.0.1',
  '172.31.255.255',
  '0xac.0x10.0.1',
  '192.168.0.1',
  '192.168.257',
  '0300.0250.0.1',
  '3232235521',
  '[::ffff:10.0.0.1]',
  '[::ffff:a00:1]',
  '[::ffff:192.168.0.1]',
  '[fc00::1]',
  '[fd12:3456::1]',
  '[fec0::1]',
  // Metadata of clouds.
  '169.254.169.254',
  '2852039166',
  '0xa9fea9fe',
  '0251.0376.0251.0376',
  '169.254.43518',
  '１６９。２５４。１６９。２５４',
  '[::ffff:169.254.169.254]',
  '[::ffff:a9fe:a9fe]',
  '169.254.170.2',
  '168.63.129.16',
  '100.100.100.200',
  '[fd00:ec2::254]',
  '[fe80::a9fe:a9fe]',
  '192.0.0.192',
  // IPv4 within IPv6: 6to4, NAT64, Teredo, ISATAP.
  '[2002:7f00:1::]',
  '[2002:7f00:1::1]',
  '[2002:a00:1::]',
  '[2002:c0a8:1::1]',
  '[2002:a9fe:a9fe::]',
  '[64:ff9b::127.0.0.1]',
  '[64:ff9b::7f00:1]',
  '[64:ff9b::a00:1]',
  '[64:ff9b::169.254.169.254]',
  '[64:ff9b:1::7f00:1]',
  '[64:ff9b:1:fffe::10.0.0.1]',
  '[2001::1]',
  '[2001:0:7f00:1::]',
  '[::a9fe:a9fe]',
  // Shared, reserved, documentation, benchmarks, multicast, broadcast.
  '100.64.0.1',
  '100.127.255.254',
  '192.0.0.1',
  '192.0.2.1',
  '198.51.100.1',
  '203.0.113.1',
  '198.18.0.1',
  '198.19.255.254',
  '192.88.99.1',
  '224.0.0.1',
  '239.255.255.250',
  '240.0.0.1',
  '255.255.255.255',
  '0xffffffff',
  '[ff02::1]',
  '[ff0e::1]',
  '[fe80::1]',
  '[2001:db8::1]',
  '[100::1]',
  '[2001:2::1]',
  '[2001:20::1]',
  '[3fff::1]',
  '[5f00::1]',
  '[4000::1]',
  '[e000::1]',
];
const CORPUS = [...LOOPBACK, ...OTHERS];

const service = useService();
let server: Server;
let port: number;
/** Where anything tried to connect to at that port. */
let attempts: string[];
const onSocket = (message: unknown): void => {
  const { socket } = message as { socket: Socket };
  socket.on('connectionAttempt', (ip, at) => {
    if (at === port) attempts.push(ip);
  });
};

beforeAll(async () => {
  server = createServer((_req, res) => void res.end());
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  ({ port } = server.address() as AddressInfo);
  subscribe('net.client.socket', onSocket);
});
beforeEach(() => {
  attempts = [];
});
afterAll(async () => {
  unsubscribe('net.client.socket', onSocket);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const urlOf = (host: string): string =>
  `http://${host.includes('\\') ? host.replace('\\', `:${port}\\`) : `${host}:${port}`}/`;

async function send(url: string, resolve: Resolve = createResolve(), networks = '') {
  const sender = createSender(parseNetworks(networks) ?? [], resolve);
  const { signal } = new AbortController();
  const outcome = await sender.send({ url: new URL(url), headers: {}, body: Buffer.from('{}'), signal });
  sender.close();
  return outcome;
}

/** Answers as a name server that was asked so often before. */
function createResolver(answers: readonly (readonly string[])[]): Resolve & { asked: number } {
  const lookup = (_name: string, _options: unknown, callback: (error: null, found: object[]) => void): void => {
    const addresses = answers[Math.min(lookup.asked++, answers.length - 1)] as readonly string[];
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  };
  lookup.asked = 0;
  return lookup as unknown as Resolve & { asked: number };
}

const addressesOf = (hosts: readonly string[]): string[] =>
  hosts.flatMap((host) => {
    const { hostname } = new URL(`http://${host}/`);
    return /^[\d.]+$|^\[/.test(hostname) ? [hostname.replace(/^\[|\]$/g, '')] : [];
  });

test('has more than a hundred addresses in its corpus', () => {
  expect(new Set(CORPUS).size).toBeGreaterThan(100);
  expect(new Set(CORPUS).size).toBe(CORPUS.length);
});

test('refuses every one of them when a handler is created, with the reason', async () => {
  const taken: unknown[] = [];
  for (const host of CORPUS) {
    const { status, body } = await service.admin('POST', 'handlers', { url: urlOf(host) });
    const isReason = [`url: ${REFUSED}`, 'url: may not contain a user name or a password; use headers instead'];
    if (status !== 400 || !isReason.includes(body.helper?.message)) taken.push({ host, status, body });
  }
  expect(taken).toEqual([]);
  expect(attempts).toEqual([]);
});

test('connects to none of them for a handler that was stored in another way', async () => {
  const outcomes = await Promise.all(CORPUS.map((host) => send(urlOf(host))));
  expect(outcomes.filter(({ status, error }) => status !== null || error !== REFUSED)).toEqual([]);
  expect(attempts).toEqual([]);
});

test('connects to none of them where a name server gives it', async () => {
  const addresses = addressesOf(CORPUS);
  expect(addresses.length).toBeGreaterThan(100);
  for (const address of addresses) {
    const outcome = await send(urlOf(NAME), createResolver([[address]]));
    expect({ address, ...outcome }).toMatchObject({ address, status: null, error: REFUSED });
  }
  expect(attempts).toEqual([]);
});

describe('a name server that changes its answer', () => {
  const ALLOWED = '127.0.0.2/32';

  test('is asked again at every connection: its answer at the creation does not count', async () => {
    const resolve = createResolver([['127.0.0.2'], ['127.0.0.1']]);
    expect((await send(urlOf(NAME), resolve, ALLOWED)).status).toBe(200);
    expect((await send(urlOf(NAME), resolve, ALLOWED)).error).toBe(REFUSED);
    expect(attempts).toEqual(['127.0.0.2']);
  });

  test('has no moment between the check and the connection', async () => {
    const resolve = createResolver([['127.0.0.2'], ['127.0.0.1']]);
    expect((await send(urlOf(NAME), resolve, ALLOWED)).status).toBe(200);
    expect(resolve.asked).toBe(1);
    expect(attempts).toEqual(['127.0.0.2']);
  });

  test('uses only the good addresses of a name with good and bad ones', async () => {
    const resolve = createResolver([['127.0.0.1', '::1', '127.0.0.2', '10.0.0.1', '::ffff:127.0.0.1']]);
    expect((await send(urlOf(NAME), resolve, ALLOWED)).status).toBe(200);
    expect(attempts).toEqual(['127.0.0.2']);
  });
});

test.each([301, 302, 303, 307, 308])('follows no redirect with status %i', async (status) => {
  const redirecting = createServer((_req, res) => void res.writeHead(status, { Location: urlOf('127.0.0.1') }).end());
  await new Promise<void>((resolve) => redirecting.listen(0, '127.0.0.3', resolve));
  const { port: from } = redirecting.address() as AddressInfo;
  const outcome = await send(`http://127.0.0.3:${from}/`, undefined, '127.0.0.3');
  expect(outcome).toMatchObject({ status, error: expect.stringContaining(`redirects to ${urlOf('127.0.0.1')}`) });
  expect(attempts).toEqual([]);
  redirecting.closeAllConnections();
  await new Promise((resolve) => redirecting.close(resolve));
});

test.each<[location: string | null, said: string]>([
  [null, 'redirects to another address; redirects are not followed'],
  ['', 'redirects to http://127.0.0.3:PORT/; redirects are not followed'],
  ['/hook/', 'redirects to http://127.0.0.3:PORT/hook/; redirects are not followed'],
  ['https://new.example/hook?token=secret#part', 'redirects to https://new.example/hook; redirects are not followed'],
  ['https://user:secret@new.example/', 'redirects to https://new.example/; redirects are not followed'],
  [`https://new.example/${'x'.repeat(5_000)}`, `redirects to https://new.example/${'x'.repeat(180)}; redirects`],
  ['javascript:alert(1)', 'redirects to another address; redirects are not followed'],
  ['https://[', 'redirects to another address; redirects are not followed'],
])('says that the receiver redirects, and to which address: %s', async (location, said) => {
  const headers = location === null ? {} : { Location: location };
  const redirecting = createServer((_req, res) => void res.writeHead(301, headers).end());
  await new Promise<void>((resolve) => redirecting.listen(0, '127.0.0.3', resolve));
  const { port: from } = redirecting.address() as AddressInfo;
  const { error } = await send(`http://127.0.0.3:${from}/`, undefined, '127.0.0.3');
  expect(error).toContain(said.replace('PORT', String(from)));
  expect(error).not.toContain('secret');
  redirecting.closeAllConnections();
  await new Promise((resolve) => redirecting.close(resolve));
});

test('says nothing of a redirect where an answer has no other address', async () => {
  const unmoved = createServer((_req, res) => void res.writeHead(304).end());
  await new Promise<void>((resolve) => unmoved.listen(0, '127.0.0.3', resolve));
  const { port: from } = unmoved.address() as AddressInfo;
  expect(await send(`http://127.0.0.3:${from}/`, undefined, '127.0.0.3')).toMatchObject({ status: 304, error: null });
  unmoved.closeAllConnections();
  await new Promise((resolve) => unmoved.close(resolve));
});

test('sends nothing for a request that was ended before it began', async () => {
  const ended = AbortSignal.abort();
  const sender = createSender(parseNetworks('127.0.0.2/32') ?? [], createResolve());
  const url = new URL(urlOf('127.0.0.2'));
  const outcome = await sender.send({ url, headers: {}, body: Buffer.from('{}'), signal: ended });
  sender.close();
  expect(outcome).toMatchObject({ status: null, error: 'This operation was aborted' });
  expect(attempts).toEqual([]);
});
