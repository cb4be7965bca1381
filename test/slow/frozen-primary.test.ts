/** What callers are told while a primary is frozen and another one takes over: the truth, or 503 in time, and never another thing. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ADMIN, type Call, startTestService, type TestService } from '../support/fixture.js';
import { type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import { until } from '../support/until.js';

// Five seconds for the database, and some for a machine that has other things to do.
const LONGEST_ANSWER_MS = 9_000;

let set: ReplicaSet;
let service: TestService;

beforeAll(async () => {
  set = await startReplicaSet();
  service = await startTestService({}, set.uri('vigil'));
}, 120_000);

afterAll(async () => {
  await service?.stop();
  await set?.stop();
}, 60_000);

interface Told {
  readonly what: string;
  readonly status: number;
  readonly retryAfter: number;
  readonly ms: number;
}

test('every kind of call, with a token and with a cookie, until the service goes on', async () => {
  const { headers } = await service.as(null)('POST', 'auth', ADMIN);
  const cookie = { Cookie: String(headers['set-cookie']).split(';')[0] as string };
  const withCookie: Call = (method, path, body) => service.as(null)(method, path, body, cookie);
  await service.admin('POST', 'objects', { id: 'car', name: 'Car' });
  const told: Told[] = [];
  const ask = async (call: Call, method: string, path: string, body?: object): Promise<void> => {
    const startMs = performance.now();
    const { status, headers: received } = await call(method, path, body);
    const ms = performance.now() - startMs;
    told.push({ what: `${method} ${path}`, status, retryAfter: Number(received['retry-after'] ?? 0), ms });
  };
  const askAll = (): Promise<unknown> =>
    Promise.all([
      ...[service.admin, withCookie].flatMap((call) => [
        ask(call, 'GET', 'auth'),
        ask(call, 'GET', 'objects'),
        ask(call, 'GET', 'objects/car'),
        ask(call, 'GET', 'objects?meta=true'),
        ask(call, 'GET', 'objects/car/packets'),
        ask(call, 'POST', 'objects/car/packets', { speed: 1 }),
        ask(call, 'PATCH', 'objects/car', { status: String(told.length) }),
        ask(call, 'POST', 'objects/car/commands/go', {}),
      ]),
      ask(service.as(null), 'POST', 'auth/token', ADMIN),
      ask(service.as(null), 'POST', 'auth', ADMIN),
    ]);
  await askAll();
  expect(told.filter(({ status }) => status !== 200)).toEqual([]);
  const before = told.length;
  const primary = await set.primary();
  await primary.freeze();
  try {
    const goesOn = async () => {
      const from = told.length;
      await askAll();
      return told.slice(from).every(({ status }) => status === 200);
    };
    await until(goesOn, 'everything to be answered again', 60_000);
  } finally {
    primary.thaw();
  }
  const after = told.slice(before);
  expect(after.some(({ status }) => status === 503)).toBe(true);
  expect(after.filter(({ status }) => status !== 200 && status !== 503)).toEqual([]);
  expect(after.filter(({ status, retryAfter }) => status === 503 && retryAfter < 1)).toEqual([]);
  expect(after.filter(({ ms }) => ms > LONGEST_ANSWER_MS)).toEqual([]);
}, 120_000);

test('a read that the database does not answer is 503 in time, though the database lives', async () => {
  const fail = async (point: object) => (await set.primary()).command({ configureFailPoint: 'failCommand', ...point });
  const blocked = { failCommands: ['find'], appName: 'vigil', blockConnection: true, blockTimeMS: 10_000 };
  // The service looks into other collections by itself every second.
  const data = { ...blocked, namespace: 'vigil.objects' };
  await fail({ mode: { times: 1 }, data });
  const startMs = performance.now();
  const { status } = await service.admin('GET', 'objects/car');
  expect({ status, isInTime: performance.now() - startMs < LONGEST_ANSWER_MS }).toEqual({
    status: 503,
    isInTime: true,
  });
  await fail({ mode: 'off' });
  expect((await service.admin('GET', 'objects/car')).status).toBe(200);
}, 60_000);
