/** The short way of frequent commands: the same reply, or the same refusal, as by the driver's own `Db.command`. */
import { beforeAll, expect, test } from '@jest/globals';
import { BSON, type Document, MongoServerError } from 'mongodb';
import { runRawCommand } from '../../src/platform/mongo/driver/raw-command.js';
import { useService } from '../support/fixture.js';
import { fc, runsOf } from '../support/runs.js';

const service = useService();
const COLLECTION = 'raw';

beforeAll(async () => {
  await service.client
    .db()
    .collection(COLLECTION)
    .insertMany(
      Array.from({ length: 20 }, (_, n) => ({ n, text: 'x'.repeat(n), deep: { at: new Date(n), list: [n] } })),
    );
});

/** What tells of the moment, and not of the command. */
const plain = ({ $clusterTime, operationTime, opTime, ...reply }: Document): Document => reply;

async function outcomeOf(run: () => Promise<Document>): Promise<unknown> {
  try {
    return plain(await run());
  } catch (error) {
    const { name, code, codeName, message, errorLabels } = error as Document;
    return { name, code, codeName, message, errorLabels };
  }
}

const number = fc.integer({ min: -1, max: 25 });
const command = fc.oneof<fc.Arbitrary<Document>[]>(
  fc.record({ find: fc.constantFrom(COLLECTION, 'none', 7), filter: fc.record({ n: fc.record({ $gte: number }) }) }),
  fc.record({
    find: fc.constant(COLLECTION),
    filter: fc.constantFrom({ n: { $odd: 1 } }, { n: { $in: [1, 2] } }, { $and: [] }),
    limit: number,
    singleBatch: fc.boolean(),
    projection: fc.constantFrom({ n: 1 }, { _id: 0, deep: 1 }, { n: 1, text: 0 }),
    maxTimeMS: fc.constant(5_000),
  }),
  fc.record({
    update: fc.constant(COLLECTION),
    updates: fc.array(
      fc.record({ q: fc.record({ n: number }), u: fc.constantFrom({ $set: { seen: 1 } }, { $none: 1 }) }),
    ),
  }),
  fc.record({ ping: fc.constant(1) }),
  fc.record({ nothing: fc.constant(1) }),
  fc.record({ getMore: fc.constant(7n), collection: fc.constant(COLLECTION) }),
);

test('returns the same reply or error as the driver for any command', async () => {
  const db = service.client.db();
  const property = fc.asyncProperty(command, async (wanted) => {
    // Changes of the same kind: only the first of two would change anything.
    if (wanted.update !== undefined) await db.collection(COLLECTION).updateMany({}, { $set: { seen: 1 } });
    const given = structuredClone(wanted);
    const raw = await outcomeOf(async () => BSON.deserialize(await runRawCommand(db, wanted)));
    expect(raw).toEqual(await outcomeOf(() => db.command(given)));
    expect(wanted).toEqual(given);
  });
  await fc.assert(property, { numRuns: runsOf(200) });
});

test('continues a cursor in the session that opened it', async () => {
  const db = service.client.db();
  const session = service.client.startSession();
  const find = { find: COLLECTION, batchSize: 5, sort: { n: 1 } };
  const { cursor } = BSON.deserialize(await runRawCommand(db, find, session), { promoteLongs: false });
  const more = { getMore: cursor.id, collection: COLLECTION };
  await expect(runRawCommand(db, more)).rejects.toThrow(MongoServerError);
  const { cursor: next } = BSON.deserialize(await runRawCommand(db, more, session));
  expect(next.nextBatch.map(({ n }: Document) => n)).toEqual(Array.from({ length: 15 }, (_, at) => at + 5));
  await session.endSession();
});
