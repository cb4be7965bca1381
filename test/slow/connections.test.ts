/** Connections that fall silent end; those that keep the heartbeat stay. The times are scaled down. */
import { afterEach, expect, test } from '@jest/globals';
import { WebSocket } from 'ws';
import { LIMITS } from '../../src/model/limits.js';
import { ADMIN, useService } from '../support/fixture.js';
import { openRaw, type Raw } from '../support/raw-socket.js';
import { until } from '../support/until.js';

// A ping that came while a client still enters would not be answered: that takes less, on a busy machine too.
const [INTERVAL_MS, TIMEOUT_MS] = [2_000, 2_500];
// What a busy machine may take beside that.
const SLACK_MS = 15_000;
Object.assign(LIMITS, { pingIntervalMs: INTERVAL_MS, pingTimeoutMs: TIMEOUT_MS });

const service = useService();
const endings: (() => void)[] = [];

afterEach(() => {
  for (const end of endings.splice(0)) end();
});

const bearer = async () => ({ Authorization: `Bearer ${await service.tokenOf(ADMIN.login, ADMIN.password)}` });

async function open(query: string): Promise<Raw> {
  const raw = await openRaw(service.url, await bearer(), query);
  endings.push(() => raw.socket.terminate());
  await raw.next('0');
  if (query.startsWith('EIO=4')) raw.socket.send('40');
  await raw.next('40');
  return raw;
}

/** Comes by polling, as clients do by default, and then changes to a WebSocket. */
async function upgrade(protocol: 3 | 4): Promise<Raw> {
  const headers = await bearer();
  const base = `${service.url}/socket.io/?EIO=${protocol}&transport=polling`;
  const first = await (await fetch(base, { headers })).text();
  const { sid } = JSON.parse(/\{.*?\}/.exec(first)?.[0] ?? '{}');
  if (protocol === 4) await fetch(`${base}&sid=${sid}`, { method: 'POST', headers, body: '40' });
  if (!first.includes('2:40')) expect(await (await fetch(`${base}&sid=${sid}`, { headers })).text()).toMatch(/40/);
  const raw = await openRaw(service.url, headers, `EIO=${protocol}&sid=${sid}`);
  endings.push(() => raw.socket.terminate());
  raw.socket.send('2probe');
  await raw.next('3probe');
  raw.socket.send('5');
  return raw;
}

const WAYS: [name: string, enter: () => Promise<Raw>][] = [
  ['EIO=3, WebSocket', () => open('EIO=3')],
  ['EIO=3, polling and then WebSocket', () => upgrade(3)],
  ['EIO=4, WebSocket', () => open('EIO=4')],
  ['EIO=4, polling and then WebSocket', () => upgrade(4)],
];

/** In every way at once: the tests wait, and do nothing else. */
const inEveryWay = (check: (name: string, enter: () => Promise<Raw>) => Promise<void>) => () =>
  Promise.all(WAYS.map(([name, enter]) => check(name, enter)));

test(
  'a client that falls silent is cut off after both times, not before',
  inEveryWay(async (name, enter) => {
    const startMs = performance.now();
    const raw = await enter();
    const longestMs = INTERVAL_MS + TIMEOUT_MS + SLACK_MS;
    await until(() => raw.closedWith !== null, `${name}: the end of the connection`, longestMs);
    const lastedMs = performance.now() - startMs;
    expect([name, lastedMs > INTERVAL_MS + TIMEOUT_MS]).toEqual([name, true]);
  }),
);

test(
  'one that keeps the heartbeat stays, and hears',
  inEveryWay(async (name, enter) => {
    const raw = await enter();
    const old = name.startsWith('EIO=3');
    // EIO=3: the client pings. EIO=4: the server does.
    if (old) {
      const pinging = setInterval(() => raw.socket.send('2'), INTERVAL_MS);
      endings.push(() => clearInterval(pinging));
    } else {
      raw.socket.on('message', (data) => String(data) === '2' && raw.socket.send('3'));
    }
    const startMs = performance.now();
    const [longMs, what] = [2 * (INTERVAL_MS + TIMEOUT_MS), 'twice both times'];
    await until(() => performance.now() - startMs > longMs, what, longMs + SLACK_MS, 20);
    expect([name, raw.socket.readyState]).toEqual([name, WebSocket.OPEN]);
    const id = `kept-${name.replace(/\W/g, '')}`;
    await service.admin('POST', 'objects', { id, name: 'Kept' });
    await service.admin('POST', `objects/${id}/packets`, {});
    await raw.next('42["object-packet"');
  }),
);
