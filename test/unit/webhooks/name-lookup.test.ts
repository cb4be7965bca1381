/** Host names are looked up so that no name server delays other names, or the threads that the whole process shares. */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { lookup, TIMEOUT } from 'node:dns';
import { readFile } from 'node:fs/promises';
import { isIPv4 } from 'node:net';
import { type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { createResolve, type FoundAddress, type Resolve } from '../../../src/webhooks/names.js';
import { until } from '../../support/until.js';

const TYPES: Readonly<Record<number, 4 | 6>> = { 1: 4, 28: 6 };
/** The names that the server knows. It answers questions about other names only when the test says so. */
const known = new Map<string, readonly string[]>();
let waiting: { query: Buffer; from: RemoteInfo }[] = [];
let server: Socket;
let resolve: Resolve;

beforeAll(async () => {
  server = createSocket('udp4');
  server.on('message', (query, from) => {
    const addresses = known.get(nameIn(query));
    if (addresses === undefined) waiting.push({ query, from });
    else reply(query, from, addresses);
  });
  await new Promise<void>((fulfil) => server.bind(0, '127.0.0.1', fulfil));
  resolve = createResolve({ servers: [serverAddress()] });
});
beforeEach(() => {
  known.clear();
  waiting = [];
});
afterAll(() => void server.close());

const serverAddress = (): string => `127.0.0.1:${server.address().port}`;
const systemLookups = (): number => process.getActiveResourcesInfo().filter((name) => /GetAddrInfo/.test(name)).length;

function nameIn(query: Buffer): string {
  const labels: string[] = [];
  for (let at = 12; query[at] !== 0; at += (query[at] as number) + 1) {
    labels.push(query.toString('latin1', at + 1, at + 1 + (query[at] as number)));
  }
  return labels.join('.').toLowerCase();
}

/** Answers with the addresses of the family that is asked for. */
function reply(query: Buffer, from: RemoteInfo, addresses: readonly string[]): void {
  const end = query.indexOf(0, 12) + 5;
  const type = query.readUInt16BE(end - 4);
  const records = addresses
    .filter((address) => (isIPv4(address) ? 4 : 6) === TYPES[type])
    .map((address) => {
      const bytes = isIPv4(address)
        ? Buffer.from(address.split('.').map(Number))
        : Buffer.from(
            address.split(':').flatMap((part) => [Number.parseInt(part, 16) >> 8, Number.parseInt(part, 16) & 255]),
          );
      return Buffer.concat([Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 0, 0, bytes.length]), bytes]);
    });
  const header = Buffer.from([...query.subarray(0, 2), 0x81, 0x80, 0, 1, 0, records.length, 0, 0, 0, 0]);
  server.send(Buffer.concat([header, query.subarray(12, end), ...records]), from.port, from.address);
}

const find = (name: string, by = resolve): Promise<FoundAddress[]> =>
  new Promise((fulfil, reject) => {
    by(name, { all: true }, (error, found) => (error === null ? fulfil(found) : reject(error)));
  });

const V6 = '2600:1:2:3:4:5:6:7';

test.each([
  ['both families, IPv4 first', ['93.184.0.1', V6, '93.184.0.2'], ['93.184.0.1', '93.184.0.2', V6]],
  ['IPv4 alone', ['93.184.0.1'], ['93.184.0.1']],
  ['IPv6 alone', [V6], [V6]],
])('finds addresses of %s', async (_families, addresses, expected) => {
  known.set('receiver.example', addresses);
  const found = await find('receiver.example');
  expect(found.map(({ address }) => address)).toEqual(expected);
  expect(found.map(({ family }) => family)).toEqual(expected.map((address) => (isIPv4(address) ? 4 : 6)));
});

test('waits neither for unanswered names, nor in the threads of the process', async () => {
  const names = Array.from({ length: 64 }, (_, n) => `silent-${n}.example`);
  const silent = names.map((name) => find(name));
  await until(() => new Set(waiting.map(({ query }) => nameIn(query))).size === names.length);
  expect(systemLookups()).toBe(0);
  known.set('receiver.example', ['93.184.0.1']);
  // While the other names are unanswered.
  await find('receiver.example');
  await promisify(lookup)('localhost');
  await readFile(fileURLToPath(import.meta.url));
  for (const name of names) known.set(name, ['93.184.0.2']);
  for (const { query, from } of waiting) reply(query, from, ['93.184.0.2']);
  expect((await Promise.all(silent)).flat()).toEqual(names.map(() => ({ address: '93.184.0.2', family: 4 })));
});

test('does not look up unanswered names in the threads', async () => {
  const impatient = createResolve({ servers: [serverAddress()], tryMs: 50 });
  await expect(find('silent.example', impatient)).rejects.toMatchObject({ code: TIMEOUT });
});

test('looks up in the system what name servers do not know, and names without a dot', async () => {
  known.set('nowhere.invalid', []);
  await expect(find('nowhere.invalid')).rejects.toMatchObject({ syscall: 'getaddrinfo' });
  const found = await find('localhost');
  expect(found.map(({ address }) => address)).toContain('127.0.0.1');
  expect(waiting).toEqual([]);
});

test('occupies one thread at most', async () => {
  const lookups: PerformanceEntry[] = [];
  const observer = new PerformanceObserver((list) => void lookups.push(...list.getEntries()));
  observer.observe({ entryTypes: ['dns'] });
  await Promise.all(Array.from({ length: 10 }, () => find('localhost')));
  await until(() => lookups.length === 10);
  observer.disconnect();
  for (const [nth, { startTime }] of lookups.entries()) {
    const before = lookups[nth - 1];
    if (before) expect(startTime).toBeGreaterThanOrEqual(before.startTime + before.duration - 0.01);
  }
});
