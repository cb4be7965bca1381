/** Unauthenticated sockets: limited in number and time, without affecting authenticated ones. */
import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { ADMIN, startSecond, useService } from '../support/fixture.js';
import { cookieOf, openRaw, type Raw } from '../support/raw-socket.js';
import { undisturbed } from '../support/undisturbed.js';
import { until } from '../support/until.js';

const PER_ADDRESS = 3;
const ALL = 5;
// Those that take all places keep them for longer than the tests last.
Object.assign(LIMITS, { socketsUnprovenPerAddress: PER_ADDRESS, socketsUnproven: ALL, socketAuthMs: 3_600_000 });

const service = useService({ env: { TRUST_PROXY: '1' } });
const raws: Raw[] = [];
const endings: (() => unknown)[] = [];
let token: string;

beforeAll(async () => {
  token = await service.tokenOf(ADMIN.login, ADMIN.password);
});

afterEach(async () => {
  for (const { socket } of raws.splice(0)) socket.terminate();
  for (const end of endings.splice(0).reverse()) await end();
});

/** The same, as soon as the places of those who just left are free. */
async function openSoon(address: string, headers: Record<string, string> = {}, query = 'EIO=4'): Promise<Raw> {
  let raw: Raw | null = null;
  const hasOpened = async (): Promise<boolean> => {
    raw = await open(address, headers, query).catch(() => null);
    return raw !== null;
  };
  await until(hasOpened, `a place for ${address}`);
  return raw as unknown as Raw;
}

async function open(
  address: string,
  headers: Record<string, string> = {},
  query = 'EIO=4',
  url = service.url,
): Promise<Raw> {
  const raw = await openRaw(url, { 'X-Forwarded-For': address, ...headers }, query);
  raws.push(raw);
  return raw;
}

const polled = (address: string, headers: Record<string, string> = {}): Promise<number> =>
  fetch(`${service.url}/socket.io/?EIO=4&transport=polling`, {
    headers: { 'X-Forwarded-For': address, ...headers },
  }).then(({ status }) => status);

test('limits unauthenticated sockets per address and IPv6 /64 network, but accepts tokens and sessions', async () => {
  for (const [network, other] of [
    ['192.0.2.7', '192.0.2.8'],
    ['2001:db8:1:2::', '2001:db8:1:3::1'],
  ] as const) {
    const own = raws.length;
    for (let at = 0; at < PER_ADDRESS; at++) await openSoon(network.endsWith('::') ? `${network}${at + 1}` : network);
    const same = network.endsWith('::') ? `${network}ffff` : network;
    await expect(open(same)).rejects.toThrow('refused: 40');
    expect(await polled(same)).toBe(403);
    await expect(open(same, { Authorization: 'Bearer forged' })).rejects.toThrow('refused: 40');
    await (await open(same, { Authorization: `Bearer ${token}` }, 'EIO=3')).next('40');
    await (await open(same, { Cookie: await cookieOf(service, ADMIN) }, 'EIO=3')).next('40');
    await openSoon(other);
    for (const { socket } of raws.splice(own)) socket.terminate();
  }
});

test('limits unauthenticated sockets in total', async () => {
  for (let at = 0; at < ALL; at++) await openSoon(`198.51.100.${at}`);
  await expect(open('198.51.100.200')).rejects.toThrow('refused: 40');
  await (await open('198.51.100.200', { Authorization: `Bearer ${token}` }, 'EIO=3')).next('40');
});

test('stops counting a socket that authenticates after the handshake', async () => {
  for (let at = 0; at < 2 * PER_ADDRESS; at++) {
    const raw = await openSoon('192.0.2.9');
    raw.socket.send(`40{"token":${JSON.stringify(token)}}`);
    await raw.next('40');
  }
});

test('closes unauthenticated and refused sockets after a timeout', async () => {
  const { socketAuthMs } = LIMITS;
  endings.push(() => Object.assign(LIMITS, { socketAuthMs }));
  Object.assign(LIMITS, { socketAuthMs: 3_000 });
  const { url } = await startSecond(service, endings);
  // Each has its time from its beginning on: after a stall it may be over before the refusal is sent.
  await undisturbed(1_000, async (attempt) => {
    const address = `192.0.2.${20 + attempt}`;
    const refused = await open(address, {}, 'EIO=4', url);
    refused.socket.send('40{"token":"forged"}');
    expect(await refused.next('44')).toContain('Unauthorized');
    const old = await open(address, {}, 'EIO=3', url);
    expect(await old.next('44')).toContain('Unauthorized');
    const silent = await open(address, {}, 'EIO=4', url);
    await until(
      () => [silent, refused, old].every(({ closedWith }) => closedWith !== null),
      'the sockets to be closed',
    );
  });
});
