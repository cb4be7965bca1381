/** Two of three members are frozen: the service acknowledges no write and sends no event of it until they answer again. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { expectRefusal } from '../support/answers.js';
import { ADMIN, startTestService, type TestService } from '../support/fixture.js';
import { type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import { until } from '../support/until.js';

let set: ReplicaSet;
let service: TestService;

beforeAll(async () => {
  // The primary does not step down: it accepts writes that it cannot make durable.
  set = await startReplicaSet({ electionMs: 600_000 });
  service = await startTestService({}, set.uri('vigil'));
  await service.admin('POST', 'objects', { id: 'car', name: 'Car' });
});

afterAll(async () => {
  await service?.stop();
  await set?.stop();
});

test('answers 503 to a write that is not durable, and sends its event only when it is', async () => {
  const listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
  const primary = await set.primary();
  const others = set.members.filter((member) => member !== primary);
  await service.admin('POST', 'objects/car/packets', { n: 0 });
  await until(() => listener.received().length === 1, 'packet 0');
  for (const member of others) await member.freeze();
  // They are thawed only after all answers: the service did not wait for them.
  const answers = await Promise.all([
    service.admin('POST', 'objects/car/packets', { n: 1 }),
    service.admin('PATCH', 'objects/car', { status: 'unsure' }),
    service.admin('POST', 'objects', { id: 'van', name: 'Van' }),
    service.as(null)('POST', 'auth', ADMIN),
    service.as(null)('POST', 'auth/token', ADMIN),
  ]);
  for (const answer of answers) {
    expectRefusal(answer, 503);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
  }
  // The primary has stored the packet, and no event of it was sent.
  expect(await service.client.db().collection('packets').countDocuments({ n: 1 })).toBe(1);
  expect(listener.received().map(({ payload }) => payload.n)).toEqual([0]);
  for (const member of others) member.thaw();
  await until(() => listener.received().length >= 3, 'the events of the writes that are durable now');
  const isBack = async () => (await service.admin('POST', 'objects/car/packets', { n: 2 })).status === 200;
  await until(isBack, 'the service to answer 200');
  await service.settled();
  const { body: stored } = await service.admin('GET', 'objects/car/packets');
  const packets = listener.received().filter(({ name }) => name === 'object-packet');
  expect(packets.map(({ payload }) => payload)).toEqual(stored);
  expect(stored.map(({ n }: { n: number }) => n).filter((n: number) => n < 2)).toEqual([0, 1]);
  const updates = listener.received().filter(({ name }) => name === 'object-update');
  expect(updates.map(({ payload: { before, after } }) => ({ before, after }))).toEqual([
    { before: { status: '' }, after: { status: 'unsure' } },
  ]);
});
