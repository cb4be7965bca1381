/** The heartbeat of Socket.IO clients: connections that stop answering end, and others stay. The times are scaled down. */
import { afterEach, expect, test } from '@jest/globals';
import { WebSocket } from 'ws';
import { LIMITS } from '../../src/core/limits.js';
import { ADMIN, useService } from '../support/fixture.js';
import { openRaw, type Raw } from '../support/raw-socket.js';
import { undisturbed } from '../support/undisturbed.js';
import { until } from '../support/until.js';

// Long enough for a client on a busy machine to connect and answer.
const INTERVAL_MS = 1_000;
const PINGS = 4;
Object.assign(LIMITS, { pingIntervalMs: INTERVAL_MS, pingTimeoutMs: 2_500 });

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

/** Connects by polling, as clients do by default, and then upgrades to a WebSocket. */
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

/** In all ways at the same time: the tests mostly wait. */
const inEveryWay = (check: (name: string, enter: () => Promise<Raw>) => Promise<void>) => () =>
  Promise.all(WAYS.map(([name, enter]) => check(name, enter)));

/** Counts the intervals of the service: the pings of a client of EIO=4 that answers them. */
async function countIntervals(): Promise<() => number> {
  const { socket } = await open('EIO=4');
  let pings = 0;
  socket.on('message', (data) => {
    if (String(data) !== '2') return;
    pings++;
    socket.send('3');
  });
  return () => pings;
}

test('disconnects a client that does not answer, but not before it is late', () =>
  undisturbed(INTERVAL_MS, checkSilent));

async function checkSilent(): Promise<void> {
  const intervals = await countIntervals();
  await inEveryWay(async (name, enter) => {
    const raw = await enter();
    const begun = intervals();
    let ended = begun;
    raw.socket.once('close', () => {
      ended = intervals();
    });
    await until(() => raw.closedWith !== null, `${name}: the end of the connection`);
    // EIO=4: not before it was pinged. EIO=3: the client pings, and is late 3.5 intervals after it connected.
    if (name.startsWith('EIO=4')) expect([name, raw.frames]).toEqual([name, expect.arrayContaining(['2'])]);
    else expect([name, ended - begun > 1]).toEqual([name, true]);
  })();
}

test('keeps a client that answers connected, and sends it events', async () => {
  // A client of EIO=3 that pings one interval and the time-out after its last ping is late.
  await undisturbed(INTERVAL_MS, (attempt) => inEveryWay((name, enter) => checkKept(`${name}, ${attempt}`, enter))());
});

async function checkKept(name: string, enter: () => Promise<Raw>): Promise<void> {
  const raw = await enter();
  let pings = 0;
  if (name.startsWith('EIO=3')) {
    const pinging = setInterval(() => raw.socket.send('2'), INTERVAL_MS);
    endings.push(() => clearInterval(pinging));
    raw.socket.on('message', (data) => String(data) === '3' && pings++);
  } else {
    raw.socket.on('message', (data) => {
      if (String(data) !== '2') return;
      pings++;
      raw.socket.send('3');
    });
  }
  // Longer than a silent client stays connected.
  await until(() => pings >= PINGS || raw.closedWith !== null, `${name}: pings and their answers`);
  expect([name, raw.socket.readyState]).toEqual([name, WebSocket.OPEN]);
  const id = `kept-${name.replace(/\W/g, '')}`;
  await service.admin('POST', 'objects', { id, name: 'Kept' });
  await service.admin('POST', `objects/${id}/packets`, {});
  await raw.next('42["object-packet"');
}
