/** Whatever packs and unpacks meanwhile: a packet that is sent again is stored once. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MongoClient, ObjectId } from 'mongodb';
import { LIMITS } from '../../../src/core/limits.js';
import { createIngest, type Ingest } from '../../../src/packets/ingest.js';
import type { Message } from '../../../src/packets/packet.js';
import { createStampClock } from '../../../src/packets/packet.js';
import { commitStep, storePending, unpackBucket } from '../../../src/packets/store/packing.js';
import { clock, replaceClock } from '../../../src/platform/clock.js';
import { createClient, type Database, databaseOf } from '../../../src/platform/mongo/driver/client.js';
import { prepareCollections } from '../../../src/platform/mongo/schema/collections.js';
import { testUri } from '../../support/fixture.js';
import { readStoredRows } from '../../support/packed.js';
import { runsOf } from '../../support/runs.js';

// What is known for this time is not known longer than a step of packing waits.
Object.assign(LIMITS, { bucketsKnownMs: 0 });
const START_MS = Date.UTC(2026, 0, 1);
const PACKETS = 60;
const SENDERS = 4;
const uri = testUri();
let database: Database;
let ingest: Ingest;

beforeAll(async () => {
  database = databaseOf(await createClient(uri).connect());
  await prepareCollections(database.db);
  ingest = createIngest(database, createStampClock(Date.now));
});
afterAll(async () => {
  await database.db.dropDatabase();
  await database.client.close();
});

const object = new ObjectId();
const source = { objectId: object.toHexString(), ownId: 'press-7', groupId: new ObjectId().toHexString() };
const { objectId } = source;
const buckets = () => database.db.collection('packedPackets').find({ _oid: object, isPending: false }).toArray();

/** Every third `_id` begins with its time, every third with that of its arrival, and the others with anything. */
function messageOf(nth: number): Message {
  const begin = [START_MS / 1_000, Math.floor(Date.now() / 1_000), nth * 7_000_000][nth % 3] as number;
  const id = begin.toString(16).padStart(8, '0') + nth.toString(16).padStart(16, '0');
  return { id, isChosen: true, timeMs: nth % 2 === 0 ? START_MS + nth : null, online: true, parameters: { nth } };
}
const MESSAGES = Array.from({ length: PACKETS }, (_, nth) => messageOf(nth));

/** What the time that a step waits does: every packet that was looked up before is stored. */
class Sending {
  readonly #running = new Set<Promise<unknown>>();
  sent = 0;
  stored = 0;

  send(messages: readonly Message[]): Promise<unknown> {
    const sending = ingest(source, messages).then(({ packets, repeated }) => {
      this.sent += packets.length;
      this.stored += packets.length - repeated.size;
    });
    this.#running.add(sending);
    return sending.finally(() => this.#running.delete(sending));
  }

  async untilSent(): Promise<void> {
    await Promise.all(this.#running);
  }
}

test('stores each packet once, while rows become buckets and buckets become rows', async () => {
  await ingest(source, MESSAGES);
  const sending = new Sending();
  let isOver = false;
  const resend = async (nth: number): Promise<void> => {
    for (let round = nth; !isOver; round++) {
      const first = (round * 7) % PACKETS;
      await sending.send(round % 3 === 0 ? [MESSAGES[first] as Message] : MESSAGES.slice(first, first + 20));
    }
  };
  const senders = Array.from({ length: SENDERS }, (_, nth) => resend(nth));
  const rounds = runsOf(40);
  for (let round = 0; round < rounds; round++) {
    // The latest packet stays a row.
    const rows = (await readStoredRows(database, objectId)).slice(round % 5, PACKETS - 1 - (round % 7));
    const pending = await storePending(database, { objectId, rows, replaces: null, mayGrow: true });
    await sending.untilSent();
    expect(await commitStep(database, pending as NonNullable<typeof pending>)).toMatchObject({ packets: rows.length });
    await sending.untilSent();
    for (const { _id } of await buckets())
      expect(await unpackBucket(database, objectId, _id as never)).toBe(rows.length);
  }
  isOver = true;
  await Promise.all(senders);
  expect(sending.sent).toBeGreaterThan(rounds);
  expect(sending.stored).toBe(0);
  expect(await buckets()).toEqual([]);
  expect((await readStoredRows(database, objectId)).length).toBe(PACKETS);
});

test('stores nothing that was looked up before the process stood still: it may be packed by now', async () => {
  const client = await new MongoClient(uri, { monitorCommands: true }).connect();
  const awake = clock;
  let stillMs = 0;
  const restore = replaceClock({ ...awake, steadyMs: () => awake.steadyMs() + stillMs });
  client.on('commandStarted', ({ command }) => {
    if (command.find === 'packedPackets') stillMs = LIMITS.packingSettleMs;
  });
  try {
    const resend = createIngest(databaseOf(client), createStampClock(Date.now));
    const before = await readStoredRows(database, objectId);
    const late = resend(source, [{ ...(MESSAGES[0] as Message), id: 'c'.repeat(24) }]);
    await expect(late).rejects.toMatchObject({ status: 503 });
    expect(await readStoredRows(database, objectId)).toEqual(before);
  } finally {
    restore();
    await client.close();
  }
});

test('looks into no bucket that cannot have the packet', async () => {
  const { profiled } = { profiled: database.db.collection('system.profile') };
  const [first] = MESSAGES;
  const rows = await readStoredRows(database, objectId);
  const pending = await storePending(database, { objectId, rows: rows.slice(0, 50), replaces: null, mayGrow: true });
  await commitStep(database, pending as NonNullable<typeof pending>);
  await database.db.command({ profile: 2 });
  // One that is new begins with its time, which is not that of a packed one.
  await ingest(source, [{ ...(first as Message), id: 'b'.repeat(24) }]);
  await ingest(source, [{ ...(first as Message), id: '7'.repeat(24), isChosen: true }]);
  await ingest(source, [{ ...(first as Message), id: null, isChosen: false }]);
  await database.db.command({ profile: 0 });
  const found = await profiled.find({ ns: /packedPackets/, 'command.filter.$or': { $exists: true } }).toArray();
  expect(found.map(({ docsExamined, keysExamined }) => [docsExamined, keysExamined <= 4])).toEqual([
    [0, true],
    [0, true],
  ]);
});
