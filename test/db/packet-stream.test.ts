/** Packets as a stream of batches: all of them, in order, each once, also where its cursor is lost on the way. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { BSON, type Document, ObjectId } from 'mongodb';
import { badRequest } from '../../src/core/errors.js';
import { type PacketStreaming, streamPackets } from '../../src/packets/packet-stream.js';
import { createFairness } from '../../src/platform/fairness.js';
import { toPacketKey } from '../../src/platform/mongo/bson/packet-key.js';
import type { Database } from '../../src/platform/mongo/driver/client.js';
import { withListRequest } from '../../src/platform/mongo/driver/list-queue.js';
import { connectDatabase } from '../../src/platform/mongo/schema/connect.js';
import { testUri } from '../support/fixture.js';

const objectId = new ObjectId();
const BATCH = 10;
let database: Database;
let stored: Document[];

/** Many of one time, and some of one time and stamp, so that batches end among them. */
const packetAt = (nth: number): Document => ({
  _id: toPacketKey(new ObjectId().toHexString(), objectId),
  _ts: nth < 60 ? 1_000 + Math.floor(nth / 25) : 1_000 + nth,
  time: 2 ** 41 + Math.floor(nth / 30),
  _oid: objectId,
  speed: nth,
  text: 'x'.repeat(nth),
});

const reading = (more: Partial<PacketStreaming> = {}): PacketStreaming => ({
  objectIds: [objectId.toHexString()],
  fields: null,
  batchPackets: BATCH,
  ...more,
});

beforeAll(async () => {
  database = await connectDatabase(testUri());
  stored = Array.from({ length: 137 }, (_, nth) => packetAt(nth));
  const others = stored.map((packet) => ({ ...packet, _id: new ObjectId(), _oid: new ObjectId() }));
  await database.db.collection('packets').insertMany([...stored, ...others]);
});
afterAll(async () => {
  await database.db.dropDatabase();
  await database.client.close();
});

async function collect(
  more: Partial<PacketStreaming>,
  between: () => Promise<void> = async () => undefined,
): Promise<Document[]> {
  const found: Document[] = [];
  for await (const { memory, starts } of streamPackets(database, reading(more))) {
    for (const start of starts) {
      found.push(BSON.deserialize(memory.subarray(start, start + memory.readInt32LE(start)), { promoteValues: true }));
    }
    await between();
  }
  return found;
}

const keysOf = (packets: readonly Document[]): string[] => packets.map(({ _id }) => String(_id));

/** What an election does to a cursor. */
async function killCursors(): Promise<void> {
  const ours = { type: 'idleCursor', ns: `${database.db.databaseName}.packets` };
  const pipeline = [{ $currentOp: { idleCursors: true } }, { $match: ours }];
  // An id may be so small that it would become a number, which the command refuses.
  const idle = await database.admin.aggregate(pipeline, { promoteLongs: false }).toArray();
  const cursors = idle.map(({ cursor }) => cursor.cursorId);
  if (cursors.length > 0) await database.db.command({ killCursors: 'packets', cursors });
}

describe('a stream of packets', () => {
  test('yields every packet once, ordered by time and stamp', async () => {
    const found = await collect({});
    expect(keysOf(found).sort()).toEqual(keysOf(stored).sort());
    const places = found.map(({ time, _ts }) => [Number(time), _ts] as const);
    expect(places).toEqual([...places].sort(([a, x], [b, y]) => a - b || x - y));
  });

  test.each([
    ['ascending', {}],
    ['descending', { isDescending: true }],
    ['reading ahead', { readsAhead: true }],
  ])('continues after a lost cursor without loss or repetition (%s)', async (_, more) => {
    const whole = await collect(more);
    let kills = 0;
    const found = await collect(more, async () => {
      kills++;
      await killCursors();
    });
    expect(kills).toBeGreaterThan(10);
    expect(keysOf(found)).toEqual(keysOf(whole));
  });

  test('reads only the requested fields and those of its order', async () => {
    const [first] = await collect({ fields: ['speed'] });
    expect(Object.keys(first as Document).sort()).toEqual(['_id', '_ts', 'speed', 'time']);
  });

  test('reads only packets that meet the conditions', async () => {
    const found = await collect({ stamps: [{ from: 1_130 }] });
    expect(found.map(({ speed }) => speed)).toEqual([130, 131, 132, 133, 134, 135, 136]);
  });

  test.each([false, true])('closes its cursor if it is not read to the end (reading ahead: %s)', async (readsAhead) => {
    for await (const { starts } of streamPackets(database, reading({ readsAhead }))) {
      expect(starts).toHaveLength(BATCH);
      break;
    }
    const ours = { type: 'idleCursor', ns: `${database.db.databaseName}.packets` };
    expect(await database.admin.aggregate([{ $currentOp: { idleCursors: true } }, { $match: ours }]).toArray()).toEqual(
      [],
    );
  });

  test('charges its caller for each batch, and ends when the client disconnects', async () => {
    const { listQueues, answerBudget } = createFairness();
    const leaving = new AbortController();
    let charges = 0;
    const caller = { userId: 'one', disconnectSignal: () => leaving.signal, consumeForMs: () => void charges++ };
    const asked = withListRequest(database, { queues: listQueues, budget: answerBudget, caller });
    let batches = 0;
    const read = async (): Promise<void> => {
      for await (const { starts } of streamPackets(asked, reading())) {
        expect(starts).toHaveLength(BATCH);
        expect(charges).toBe(++batches);
        if (batches === 3) leaving.abort(badRequest('gone'));
      }
    };
    await expect(read()).rejects.toThrow('gone');
    expect(batches).toBe(3);
  });
});
