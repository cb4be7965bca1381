/** Two of three members do not answer: nothing is acknowledged, nothing is told; when they are back, everything is. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { expectRefusal } from '../support/answers.js';
import { ADMIN, type Answer, type Call, startTestService, type TestService } from '../support/fixture.js';
import { type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import { until } from '../support/until.js';

const LONGEST_ANSWER_MS = 9_000;
const BACK_MS = 40_000;

let set: ReplicaSet;
let service: TestService;

beforeAll(async () => {
  // The primary stays one: it takes writes that it cannot make durable.
  set = await startReplicaSet({ electionMs: 120_000 });
  service = await startTestService({}, set.uri('vigil'));
  await service.admin('POST', 'objects', { id: 'car', name: 'Car' });
}, 120_000);

afterAll(async () => {
  await service?.stop();
  await set?.stop();
}, 60_000);

async function timed(call: Call, ...args: Parameters<Call>): Promise<Answer & { ms: number }> {
  const startMs = performance.now();
  const answer = await call(...args);
  return { ...answer, ms: performance.now() - startMs };
}

test('a write that is not durable is answered 503 in time and told to nobody until it is', async () => {
  const listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
  const primary = await set.primary();
  const others = set.members.filter((member) => member !== primary);
  await service.admin('POST', 'objects/car/packets', { n: 0 });
  await until(() => listener.received().length === 1);
  for (const member of others) await member.freeze();
  const answers = await Promise.all([
    timed(service.admin, 'POST', 'objects/car/packets', { n: 1 }),
    timed(service.admin, 'PATCH', 'objects/car', { status: 'unsure' }),
    timed(service.admin, 'POST', 'objects', { id: 'van', name: 'Van' }),
    timed(service.as(null), 'POST', 'auth', ADMIN),
    timed(service.as(null), 'POST', 'auth/token', ADMIN),
  ]);
  for (const answer of answers) {
    expectRefusal(answer, 503);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(answer.ms).toBeLessThan(LONGEST_ANSWER_MS);
  }
  // The primary has it, and nobody seen it.
  expect(await service.client.db().collection('packets').countDocuments({ n: 1 })).toBe(1);
  expect(listener.received().map(({ payload }) => payload.n)).toEqual([0]);
  for (const member of others) member.thaw();
  await until(() => listener.received().length >= 3, 'what is durable now to be told', BACK_MS);
  const goesOn = async () => (await service.admin('POST', 'objects/car/packets', { n: 2 })).status === 200;
  await until(goesOn, 'the service to go on', BACK_MS);
  await service.settled();
  const { body: stored } = await service.admin('GET', 'objects/car/packets');
  const packets = listener.received().filter(({ name }) => name === 'object-packet');
  expect(packets.map(({ payload }) => payload)).toEqual(stored);
  expect(stored.map(({ n }: { n: number }) => n).filter((n: number) => n < 2)).toEqual([0, 1]);
  const updates = listener.received().filter(({ name }) => name === 'object-update');
  expect(updates.map(({ payload: { before, after } }) => ({ before, after }))).toEqual([
    { before: { status: '' }, after: { status: 'unsure' } },
  ]);
}, 120_000);
