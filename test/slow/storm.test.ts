/** A restart sends every listener away at once, and all of them come back. STORM_SOCKETS=2000 for more than a few. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { io, type Socket } from 'socket.io-client';
import { ADMIN, testUri } from '../support/fixture.js';
import { findFreePort } from '../support/ports.js';
import { type Process, startProcess } from '../support/process.js';
import { until } from '../support/until.js';

const SOCKETS = Number(process.env.STORM_SOCKETS ?? 100);
// What is promised of 2,000.
const BACK_MS = 60_000;

const uri = testUri();
let env: Record<string, string>;
let service: Process;
const sockets: Socket[] = [];

beforeAll(async () => {
  env = {
    ...{ PORT: String(await findFreePort()), OPS_PORT: String(await findFreePort()), MONGODB_URI: uri },
    ...{ SECRET: randomBytes(32).toString('hex'), ADMIN_PASSWORD: ADMIN.password, STOP_DELAY: '0' },
    ...{ LIVE_CONNECTIONS_PER_USER: '10000', LIVE_CONNECTIONS_PER_ADDRESS: '10000' },
  };
  service = await startProcess(env);
});
afterAll(async () => {
  for (const socket of sockets) socket.disconnect();
  service?.child.kill('SIGKILL');
  const client = await new MongoClient(uri).connect();
  await client.db().dropDatabase();
  await client.close();
});

test(`${SOCKETS} listeners come back after a restart, and hear what happens`, async () => {
  const headers = { 'Content-Type': 'application/json' };
  const login = await fetch(`${service.url}/api/v1/auth/token`, {
    method: 'POST',
    headers,
    body: JSON.stringify(ADMIN),
  });
  const { token } = (await login.json()) as { token: string };
  const send = (path: string, body: object) => {
    const authorized = { ...headers, Authorization: `Bearer ${token}` };
    return fetch(`${service.url}/api/v1/${path}`, { method: 'POST', headers: authorized, body: JSON.stringify(body) });
  };
  expect((await send('objects', { id: 'car', name: 'Car' })).status).toBe(200);
  const received = new Map<number, Set<Socket>>();
  for (let n = 0; n < SOCKETS; n++) {
    const socket = io(service.url, { transports: ['websocket'], auth: { token }, forceNew: true });
    socket.on('object-packet', ({ mark }) => received.set(mark, (received.get(mark) ?? new Set()).add(socket)));
    sockets.push(socket);
    // Not all in one moment: that is for the restart.
    if (n % 50 === 49) await until(() => sockets.filter(({ connected }) => connected).length > n - 20, 'most', BACK_MS);
  }
  const connected = () => sockets.filter((socket) => socket.connected).length;
  await until(() => connected() === SOCKETS, 'all are connected', BACK_MS, 20);
  expect((await send('objects/car/packets', { mark: 1 })).status).toBe(200);
  await until(() => received.get(1)?.size === SOCKETS, 'all hear', BACK_MS, 20);

  const { code, ms } = await service.stop();
  expect(code).toBe(0);
  await until(() => connected() === 0, 'all are away', BACK_MS, 5);
  service = await startProcess(env);
  const readyMs = performance.now();
  await until(() => connected() === SOCKETS, 'all are back', BACK_MS, 20);
  const backMs = performance.now() - readyMs;
  expect((await send('objects/car/packets', { mark: 2 })).status).toBe(200);
  await until(() => received.get(2)?.size === SOCKETS, 'all hear again', BACK_MS, 20);
  if (SOCKETS > 100) console.log({ sockets: SOCKETS, stopMs: Math.round(ms), allBackMs: Math.round(backMs) });
  expect(service.child.exitCode).toBeNull();
}, 300_000);
