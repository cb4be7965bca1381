/** The database goes away and comes back: 503 meanwhile, with the time to come again; then all is as before. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { entityOf, expectRefusal } from '../answers.js';
import { startTestService, type TestService, testUri } from '../fixture.js';
import { until } from '../until.js';

let service: TestService;
const sockets = new Set<Socket>();
const database = new URL(testUri());
const line = createServer((near) => {
  const far = connect(Number(database.port), database.hostname);
  near.pipe(far).pipe(near);
  for (const socket of [near, far]) {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  }
  near.on('close', () => far.destroy());
  far.on('close', () => near.destroy());
});
let port = 0;

async function mend(): Promise<void> {
  line.listen(port, '127.0.0.1');
  await once(line, 'listening');
  port = (line.address() as { port: number }).port;
}

async function cut(): Promise<void> {
  line.close();
  for (const socket of sockets) socket.destroy();
  await once(line, 'close');
}

beforeAll(async () => {
  await mend();
  const uri = new URL(database);
  uri.port = String(port);
  service = await startTestService({}, uri.href);
});

afterAll(async () => {
  if (!line.listening) await mend();
  await service?.stop();
  await cut();
});

test('503 says when to come back, on every path that needs the database, and the service mends itself', async () => {
  const object = entityOf(await service.admin('POST', 'objects', { id: 'car', name: 'Car' }));
  await cut();
  const asked = await Promise.all([
    service.admin('GET', 'objects'),
    service.admin('GET', 'objects/car'),
    service.admin('POST', 'objects', { id: 'van', name: 'Van' }),
    service.admin('PATCH', 'objects/car', { status: 'x' }),
    service.admin('POST', 'objects/car/packets', { speed: 1 }),
    service.admin('POST', '/objects/car/commands/go', {}),
    service.as(null)('POST', 'auth/token', { login: 'admin', password: 'whatever it is' }),
  ]);
  for (const answer of asked) {
    expectRefusal(answer, 503);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    expect(answer.text).not.toMatch(/mongo|ECONN|127\.0\.0\.1/i);
  }
  // Who is nobody is nobody without a database; and what needs none is answered.
  expectRefusal(await service.as(null)('GET', 'objects'), 401);
  expect((await service.as(null)('GET', '/')).status).toBe(200);
  await mend();
  await until(async () => (await service.admin('GET', 'objects')).status === 200, 'the service answers again');
  expect((await service.admin('GET', 'objects')).body).toEqual([object]);
  entityOf(await service.admin('POST', 'objects', { id: 'van', name: 'Van' }));
});
