/** The packets of an interval go when somebody who may asks for it, and no others. */
import { expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { useService } from '../support/fixture.js';
import { until } from '../support/until.js';
import { pathOf, removalsOf, START } from './removal-fixture.js';

const service = useService();

const { createObject, numbersOf, removals } = removalsOf(service);
const eventsOf = async (id: string, action: string) =>
  (await service.admin('GET', `audit?where.action=${action}&where.entity=${id}`)).body;

test('removes the packets of the interval, bounds included, and records a security event', async () => {
  const id = await createObject(3_000);
  const other = await createObject(3);
  const query = `from=2026-01-01T00:00:01&to=${START + 2_998_000}`;
  const dry = await service.admin('DELETE', pathOf(id, `${query}&dryRun=true`));
  expect(dry.body).toEqual({ success: true, count: 2_998 });
  expect(await numbersOf(id)).toHaveLength(3_000);
  const { status, body } = await service.admin('DELETE', pathOf(id, query));
  expect([status, body]).toEqual([200, { success: true, status: 'queued' }]);
  await until(async () => (await removals().countDocuments()) === 0);
  expect(await numbersOf(id)).toEqual([0, 2_999]);
  expect(await numbersOf(other)).toEqual([0, 1, 2]);
  const [done] = await eventsOf(id, 'packets removed');
  const from = 'from=2026-01-01T00:00:01.000Z';
  const to = 'to=2026-01-01T00:49:58.000Z';
  expect(done).toMatchObject({ method: 'DELETE', path: `/objects/${id}/packets`, fields: [from, to, 'packets=2998'] });
  await until(async () => (await eventsOf(id, 'packet removal requested')).length === 1);
  const [asked] = await eventsOf(id, 'packet removal requested');
  expect(asked).toMatchObject({ fields: [from, to], user: done.user, requestId: done.requestId });
});

test('tells those who follow the object when its packets are removed, and its state follows', async () => {
  const id = await createObject(3);
  await service.settled();
  const listener = await service.listen(await service.tokenOf('admin', 'correct horse battery'));
  await service.admin('DELETE', pathOf(id, `from=${START + 2_000}`));
  await until(() => listener.received().length > 0, 'the event');
  await service.settled();
  const events = listener.take().filter(({ payload }) => payload.id === id);
  const packetsRemoved = expect.any(Number);
  expect(events).toMatchObject([{ name: 'object-update', payload: { id, before: {}, after: { packetsRemoved } } }]);
  expect(Object.keys(events[0]?.payload.after)).toEqual(['packetsRemoved']);
  listener.close();
  expect((await service.admin('GET', `objects/${id}`)).body).toMatchObject({ packetsRemoved, state: { nth: 1 } });
  const { body } = await service.admin('GET', `objects?where._id=${id}&state=latest-of-each`);
  expect(body[0].latest.nth.value).toBe(1);
  await service.admin('DELETE', pathOf(id, 'from=0'));
  await until(async () => (await service.admin('GET', `objects/${id}`)).body.state === undefined, 'no state');
});

/** The packets with `nth` 0 to 7, without those in between `first` and `last`. */
async function removeBetween(id: string, first: number, last: number): Promise<void> {
  await service.admin('DELETE', pathOf(id, `from=${START + first * 1_000}&to=${START + last * 1_000}`));
  await until(async () => (await removals().countDocuments()) === 0, 'the removal');
}

test.each<[after: number, removed: [number, number][], expected: number[]]>([
  [1, [[0, 1]], [2, 3]],
  [3, [[2, 5]], [6, 7]],
  [3, [[3, 3]], [4, 5]],
  [
    4,
    [
      [1, 1],
      [4, 4],
    ],
    [5, 6],
  ],
  [
    5,
    [
      [4, 7],
      [1, 2],
    ],
    [],
  ],
])('continues a list and an export after packet %d, which was removed with %j', async (after, removed, expected) => {
  const id = await createObject(0);
  const own = (nth: number): object => (nth % 2 === 0 ? {} : { _id: String(new ObjectId()) });
  // Half of them with an `_id` of the device.
  const packets = Array.from({ length: 8 }, (_, nth) => ({ time: START + nth * 1_000, nth, ...own(nth) }));
  await service.admin('POST', `objects/${id}/packets`, packets);
  const { _id } = (await service.admin('GET', pathOf(id, `where.nth=${after}`))).body[0];
  for (const [first, last] of removed) await removeBetween(id, first, last);
  const list = await service.admin('GET', pathOf(id, `limit=2&after=${_id}`));
  expect(list.body.map(({ nth }: { nth: number }) => nth)).toEqual(expected);
  const csv = await service.admin('GET', pathOf(id, `limit=2&format=csv&only=nth&after=${_id}`));
  expect(csv.text.trim().split('\r\n').slice(1)).toHaveLength(expected.length);
});

test('removes the whole of the last day that is named, and nothing of the next', async () => {
  const id = await createObject(0);
  const dayOf = (day: number, clock: string, nth: number) => ({ time: `2026-01-0${day}T${clock}Z`, nth });
  const packets = [
    dayOf(1, '23:59:59.999', 1),
    dayOf(2, '00:00:00', 2),
    dayOf(3, '12:00:00', 3),
    dayOf(3, '23:59:59.999', 4),
    dayOf(4, '00:00:00', 5),
  ];
  await service.admin('POST', `objects/${id}/packets`, packets);
  const query = 'from=2026-01-02&to=2026-01-03';
  expect((await service.admin('DELETE', pathOf(id, `${query}&dryRun=true`))).body.count).toBe(3);
  await service.admin('DELETE', pathOf(id, query));
  await until(async () => (await numbersOf(id)).length === 2);
  expect(await numbersOf(id)).toEqual([1, 5]);
});

test('removes the state of the object with its packets', async () => {
  const id = await createObject(2);
  expect((await service.admin('GET', `objects/${id}`)).body.state).toMatchObject({ nth: 1 });
  await service.admin('DELETE', pathOf(id, `to=${START + 60_000}`));
  await until(async () => (await numbersOf(id)).length === 0);
  expect((await service.admin('GET', `objects/${id}`)).body.state).toBeUndefined();
});

test('leaves packets that arrive after the request', async () => {
  const id = await createObject(1);
  // As one that an instance stored and ended before it carried it out.
  const by = { userId: '0'.repeat(24), login: 'x', address: 'x', requestId: 'x', method: 'DELETE', path: '/x' };
  const [{ _ts: late }] = (await service.admin('GET', `objects/${id}/packets`)).body;
  await service.admin('POST', `objects/${id}/packets`, { time: START + 500, nth: 7 });
  const request = { _id: new ObjectId(), object: new ObjectId(id), fromMs: START, toMs: null, stampUs: late, by };
  await removals().insertOne({ ...request, removed: 5 });
  await until(async () => (await removals().countDocuments({ _id: request._id })) === 0, 'the removal');
  expect(await numbersOf(id)).toEqual([7]);
  expect((await eventsOf(id, 'packets removed'))[0].fields).toContain('packets=6');
});

test('records a removal once, even if the instance ends before it deletes the request', async () => {
  const _id = new ObjectId();
  const id = await createObject(1);
  const by = { userId: '0'.repeat(24), login: 'x', address: 'x', requestId: 'x', method: 'DELETE', path: '/x' };
  for (let round = 1; round <= 2; round++) {
    const request = { _id, object: new ObjectId(id), fromMs: START, toMs: null, stampUs: Date.now() * 1_000, by };
    await removals().insertOne({ ...request, removed: 0 });
    // Another request wakes the instance.
    await service.admin('DELETE', pathOf(await createObject(0), 'from=1'));
    await until(async () => (await removals().countDocuments()) === 0, 'the removal');
  }
  expect(await eventsOf(id, 'packets removed')).toMatchObject([
    { _id: String(_id), fields: ['from=2026-01-01T00:00:00.000Z', 'packets=1'] },
  ]);
});

test('ignores an empty field of a form', async () => {
  const id = await createObject(1);
  const { body } = await service.admin('DELETE', pathOf(id, 'from=1&to=&search=&dryRun=false'));
  expect(body).toEqual({ success: true, status: 'queued' });
});

test.each([
  ['', 'from, to: at least one of them is required'],
  ['from=&to=', 'from, to: at least one of them is required'],
  [
    'from=yesterday',
    'from: expected ms since the epoch (12 to 14 digits) or a time such as 2026-11-23 or 2026-11-23T10:00Z',
  ],
  ['from=20261123', 'from: these digits look like a date: write 2026-11-23'],
  ['from=20261123&dryRun=true', 'from: these digits look like a date: write 2026-11-23'],
  ['begin=2026', 'begin: these digits look like a date: write 2026-01-01'],
  ['to=20261123100000', 'to: these digits look like a date: write 2026-11-23T10:00:00'],
  ['from=202611231000', 'from: these digits look like a date: write 2026-11-23T10:00'],
  ['end=1795500000', 'end: these look like seconds: write milliseconds, 1795500000000, or 2026-11-24T06:00:00.000Z'],
  ['from=0&to=0001-01-01', expect.stringMatching(/^to: expected/)],
  ['from=2&to=1', 'from: is later than to'],
  ['from=1&where.speed=5', 'where.speed: packets are removed by from and to alone'],
  ['from=1&search=x', 'search: packets are removed by from and to alone'],
  ['from=1&limit=5', 'limit: packets are removed by from and to alone'],
  ['from=1&dryrun=true', 'dryrun: is spelled dryRun'],
  ['from=1&dryRun=yes', 'dryRun: expected true or false'],
])('refuses %s', async (query, message) => {
  const id = await createObject(1);
  const { status, body } = await service.admin('DELETE', pathOf(id, query));
  expect([status, body.helper.message]).toEqual([400, message]);
  expect(await numbersOf(id)).toEqual([0]);
});

test('refuses more waiting removals than the limit of a user', async () => {
  const id = await createObject(1);
  const userId = (await service.admin('GET', 'auth')).body._id;
  // Of an object that is not there any more: as long as these stand first, they are not over.
  const waiting = Array.from({ length: LIMITS.removalsWaitingPerCaller }, () => ({ by: { userId }, object: null }));
  await removals().insertMany(waiting);
  expect((await service.admin('DELETE', pathOf(id, 'from=1'))).status).toBe(429);
  await removals().deleteMany({ object: null });
  expect((await service.admin('DELETE', pathOf(id, 'from=1'))).status).toBe(200);
});
