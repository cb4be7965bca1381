/** A restart disconnects all clients of live events at once: all reconnect and receive events. 2,000 clients in a soak. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { io, type Socket } from 'socket.io-client';
import { ADMIN, testUri } from '../support/fixture.js';
import { findFreePort } from '../support/ports.js';
import { type Process, startProcess } from '../support/process.js';
import { isSoak } from '../support/runs.js';
import { until } from '../support/until.js';

const SOCKETS = isSoak ? 2_000 : 100;

const uri = testUri();
let env: Record<string, string>;
let service: Process;
const sockets: Socket[] = [];

beforeAll(async () => {
  env = {
    PORT: String(await findFreePort()),
    OPS_PORT: String(await findFreePort()),
    MONGODB_URI: uri,
    SECRET: randomBytes(32).toString('hex'),
    ADMIN_PASSWORD: ADMIN.password,
    STOP_DELAY: '0',
    LIVE_CONNECTIONS_PER_USER: '10000',
    LIVE_CONNECTIONS_PER_ADDRESS: '10000',
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

test('sends events to all clients that reconnect after a restart', async () => {
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
    // In groups: only the restart disconnects all at once.
    if (n % 50 === 49)
      await until(() => sockets.filter(({ connected }) => connected).length > n - 20, 'most are connected');
  }
  const connected = () => sockets.filter((socket) => socket.connected).length;
  await until(() => connected() === SOCKETS, 'all are connected');
  expect((await send('objects/car/packets', { mark: 1 })).status).toBe(200);
  await until(() => received.get(1)?.size === SOCKETS, 'all receive the packet');

  expect((await service.stop()).code).toBe(0);
  await until(() => connected() === 0, 'all are disconnected');
  service = await startProcess(env);
  await until(() => connected() === SOCKETS, 'all are connected again');
  expect((await send('objects/car/packets', { mark: 2 })).status).toBe(200);
  await until(() => received.get(2)?.size === SOCKETS, 'all receive the second packet');
  expect(service.child.exitCode).toBeNull();
});
