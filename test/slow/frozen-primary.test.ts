/** Answers while the primary is frozen and another member takes over: 200 or 503, and nothing else. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { ADMIN, type Call, startTestService, type TestService } from '../support/fixture.js';
import { holdCommands } from '../support/held-commands.js';
import { type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import { until } from '../support/until.js';

let set: ReplicaSet;
let service: TestService;

beforeAll(async () => {
  set = await startReplicaSet();
  service = await startTestService({}, set.uri('vigil'));
});

afterAll(async () => {
  await service?.stop();
  await set?.stop();
});

interface Answered {
  readonly what: string;
  readonly status: number;
  readonly retryAfter: number;
}

test('answers every kind of call with 200 or 503 while the primary is frozen, until another member has taken over', async () => {
  const { headers } = await service.as(null)('POST', 'auth', ADMIN);
  const cookie = { Cookie: String(headers['set-cookie']).split(';')[0] as string };
  const withCookie: Call = (method, path, body) => service.as(null)(method, path, body, cookie);
  await service.admin('POST', 'objects', { id: 'car', name: 'Car' });
  const answers: Answered[] = [];
  const ask = async (call: Call, method: string, path: string, body?: object): Promise<void> => {
    const { status, headers: received } = await call(method, path, body);
    answers.push({ what: `${method} ${path}`, status, retryAfter: Number(received['retry-after'] ?? 0) });
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
        ask(call, 'PATCH', 'objects/car', { status: String(answers.length) }),
        ask(call, 'POST', 'objects/car/commands/go', {}),
      ]),
      ask(service.as(null), 'POST', 'auth/token', ADMIN),
      ask(service.as(null), 'POST', 'auth', ADMIN),
    ]);
  const isWell = async () => {
    const from = answers.length;
    await askAll();
    return answers.slice(from).every(({ status }) => status === 200);
  };
  // A busy machine may make the members elect another primary before it is frozen.
  await until(isWell, 'every call to be answered with 200 at first');
  const before = answers.length;
  const primary = await set.primary();
  await primary.freeze();
  try {
    // The primary stays frozen: another member answers, and what was refused was refused before the primary could answer.
    await until(isWell, 'every call to be answered with 200');
  } finally {
    primary.thaw();
  }
  expect(answers.slice(before).some(({ status }) => status === 503)).toBe(true);
  expect(answers.filter(({ status }) => status !== 200 && status !== 503)).toEqual([]);
  expect(answers.filter(({ status, retryAfter }) => status === 503 && retryAfter < 1)).toEqual([]);
});

test('answers 503 to a read while the database still works on it', async () => {
  // The service reads other collections by itself every second.
  const reads = { command: 'find', database: 'vigil', collection: 'objects' } as const;
  const { end } = await holdCommands(await set.primary(), reads);
  const { databaseAnswerMs } = LIMITS;
  Object.assign(LIMITS, { databaseAnswerMs: 1_000 });
  try {
    // A service that waited for the database would not answer.
    expect((await service.admin('GET', 'objects/car')).status).toBe(503);
  } finally {
    Object.assign(LIMITS, { databaseAnswerMs });
    await end();
  }
  const isBack = async () => (await service.admin('GET', 'objects/car')).status === 200;
  await until(isBack, 'the service to answer 200');
});
