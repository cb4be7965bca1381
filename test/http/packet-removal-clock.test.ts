/** What a removal takes for stored before it, where the clocks of servers go forward and back. */
import { afterEach, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { useService } from '../support/fixture.js';
import { until } from '../support/until.js';
import { pathOf, removalsOf, START } from './removal-fixture.js';

let offsetMs = 0;
let stoppedMs: number | null = null;
const service = useService({ now: () => stoppedMs ?? Date.now() + offsetMs });
afterEach(() => {
  offsetMs = 0;
  stoppedMs = null;
});

const HOUR_MS = 3_600_000;

const { createObject, numbersOf, removals } = removalsOf(service);

test.each([
  ['two hours forward and back', [2 * HOUR_MS, 0]],
  ['two days back', [0, -48 * HOUR_MS]],
  ['two days back and forward again', [0, -48 * HOUR_MS, 0]],
  ['an hour back, and an hour more', [0, -HOUR_MS, -2 * HOUR_MS]],
])(
  'removes what was stored before the request, and keeps what comes after it, though the clock jumps %s',
  async (_, steps) => {
    const { _id: id } = (await service.admin('POST', 'objects', { id: `jumping-${new ObjectId()}`, name: 'x' })).body;
    const send = async (nth: number): Promise<void> => {
      expect((await service.admin('POST', `objects/${id}/packets`, { time: START + nth, nth })).status).toBe(200);
    };
    for (const [index, step] of steps.entries()) {
      offsetMs = step;
      await send(index);
    }
    const query = `from=${START}&to=${START + 1_000}`;
    const dry = await service.admin('DELETE', pathOf(id, `${query}&dryRun=true`));
    await service.admin('DELETE', pathOf(id, query));
    await send(100);
    await until(async () => (await removals().countDocuments()) === 0, 'the removal');
    expect([dry.body.count, await numbersOf(id)]).toEqual([steps.length, [100]]);
  },
);

test('removes what a server stored whose clock was ahead and that has ended since', async () => {
  const id = await createObject(3);
  const packets = service.client.db().collection('packets');
  const some = await packets.find({ nth: { $gt: 0 }, _oid: new ObjectId(id) }).toArray();
  for (const { _id, _ts } of some) await packets.updateOne({ _id }, { $set: { _ts: _ts + 2 * HOUR_MS * 1_000 } });
  await service.admin('DELETE', pathOf(id, `from=${START}&to=${START + 10_000}`));
  await service.admin('POST', `objects/${id}/packets`, { time: START + 5_000, nth: 5 });
  await until(async () => (await removals().countDocuments()) === 0, 'the removal');
  expect(await numbersOf(id)).toEqual([5]);
});

test('tells of every removal, though the clock stands still', async () => {
  const id = await createObject(3);
  const seen: number[] = [];
  stoppedMs = Date.now();
  for (const nth of [0, 1]) {
    await service.admin('DELETE', pathOf(id, `from=${START + nth * 1_000}&to=${START + nth * 1_000}`));
    await until(async () => (await removals().countDocuments()) === 0, 'the removal');
    seen.push((await service.admin('GET', `objects/${id}`)).body.packetsRemoved);
  }
  expect(seen[1]).not.toBe(seen[0]);
});
