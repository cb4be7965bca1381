/** The simulated database answers as the real one: random commands against both, through the same driver. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import {
  BSON,
  type ClientSession,
  type Collection,
  type Document,
  Long,
  MongoClient,
  MongoError,
  ObjectId,
} from 'mongodb';
import { createRandom } from '../../scripts/bench/random.js';
import { replaceClock } from '../../src/platform/clock.js';
import { testUri } from '../support/fixture.js';
import { fc, runsOf } from '../support/runs.js';
import { simulatedClient } from './database/client.js';
import { SimulatedDatabase } from './database/network.js';
import { VirtualTime } from './virtual-time.js';

const ids = Array.from({ length: 5 }, (_, at) => new ObjectId(`${at}`.repeat(24)));

type Operation = (collection: Collection<Document>, client: MongoClient) => Promise<unknown>;

interface Named {
  readonly name: string;
  readonly run: Operation;
}

const id = fc.constantFrom(...ids);
const number = fc.integer({ min: 0, max: 4 });
const text = fc.constantFrom('a', 'b', 'ä', '');
const scalar = fc.oneof(number, text, fc.constant(null), fc.boolean(), fc.constantFrom(...ids));
const value: fc.Arbitrary<unknown> = fc.oneof(scalar, fc.array(scalar, { maxLength: 3 }), fc.record({ n: number }));
const document = fc.record({ _id: id, a: value, b: number, c: fc.record({ d: scalar }) }, { requiredKeys: ['_id'] });

const path = fc.constantFrom('a', 'b', 'c.d', 'a.n');
const operand = fc.oneof(
  scalar,
  fc.record({ $in: fc.array(scalar, { maxLength: 3 }) }),
  fc.record({ $nin: fc.array(scalar, { maxLength: 3 }) }),
  fc.record({ $ne: scalar }),
  fc.record({ $exists: fc.boolean() }),
  fc.record({ $gt: number }),
  fc.record({ $gte: number, $lt: number }),
  fc.record({ $lte: text }),
  fc.record({ $not: fc.record({ $gt: number }) }),
  fc.record({ $type: fc.constantFrom('string', 'null', 'number') }),
);
const plain = fc
  .array(fc.tuple(path, operand), { minLength: 0, maxLength: 2 })
  .map((entries): Document => Object.fromEntries(entries));
const filter: fc.Arbitrary<Document> = fc.oneof(
  plain,
  fc.record({ _id: id }),
  fc.record({ _id: fc.record({ $in: fc.array(id, { maxLength: 4 }) }) }),
  fc.array(plain, { minLength: 1, maxLength: 2 }).map(($or) => ({ $or })),
  fc.array(plain, { minLength: 1, maxLength: 2 }).map(($nor) => ({ $nor })),
  fc.tuple(plain, id).map(([one, _id]) => ({ $and: [one, { _id }] })),
);
const update: fc.Arbitrary<Document | Document[]> = fc.oneof(
  fc.record({ $set: fc.record({ a: value, 'c.e': scalar }) }),
  fc.record({ $set: fc.record({ b: number }), $unset: fc.constant({ a: '' }) }),
  fc.record({ $inc: fc.record({ b: number }) }),
  fc.record({ $max: fc.record({ b: number }), $setOnInsert: fc.constant({ a: 1 }) }),
  fc.record({ $min: fc.record({ b: number }) }),
  fc.record({ $addToSet: fc.record({ l: scalar }) }),
  fc.record({
    $push: fc.record({ l: fc.record({ $each: fc.array(scalar, { maxLength: 2 }), $slice: fc.constant(-2) }) }),
  }),
  fc.record({ $pull: fc.record({ l: scalar }) }),
  scalar.map((one) => [
    { $set: { a: { $ifNull: ['$a', { $literal: one }] }, e: { $cond: [{ $gt: ['$b', 1] }, 'more', '$b'] } } },
    { $unset: 'c' },
  ]),
);
const sort = fc.constantFrom<Document>({ _id: 1 }, { _id: -1 }, { b: 1, _id: 1 }, { a: -1, _id: 1 });
const COMPUTED = { isMore: { $gt: ['$b', 1] }, b: 1, sum: { $add: ['$b', 2] } };
const projection = fc.constantFrom<Document>(
  {},
  { a: 1 },
  { _id: 1 },
  { _id: 0, b: 1 },
  { a: 0 },
  { 'c.d': 1 },
  COMPUTED,
);

/** Texts for the report of a failure. */
const named = (name: string, given: unknown, run: Operation): Named => ({
  name: `${name} ${BSON.EJSON.stringify(given as Document)}`,
  run,
});

/** One write, as a statement of a transaction or by itself. */
type Write = (collection: Collection<Document>, options: { session?: ClientSession }) => unknown;

interface Writing extends Named {
  readonly key: string;
  readonly write: Write;
}

const write: fc.Arbitrary<Writing> = fc
  .oneof(
    document.map((one) => ({ insert: one, _id: one._id })),
    fc.tuple(id, number).map(([_id, b]) => ({ set: b, _id })),
    id.map((_id) => ({ remove: true, _id })),
    fc.tuple(id, number).map(([_id, b]) => ({ upsert: b, _id })),
  )
  .map((given) => {
    const run: Write = (collection, options) => {
      if ('insert' in given) return collection.insertOne(copy(given.insert), options);
      const { _id } = given;
      if ('remove' in given) return collection.findOneAndDelete({ _id }, options);
      const upsert = 'upsert' in given;
      const update = { $set: { b: upsert ? given.upsert : given.set } };
      return collection.findOneAndUpdate({ _id }, update, { ...options, upsert, returnDocument: 'after' });
    };
    const key = String(given._id);
    return { ...named('write', given, async (collection) => run(collection, {})), key, write: run };
  });

/** What two transactions do in turns, and others beside them. */
const turn = fc.record({ who: fc.constantFrom('first', 'second', 'other'), what: write });
const ending = fc.constantFrom('commit', 'abort');
const transactions = fc
  .record({ turns: fc.array(turn, { minLength: 1, maxLength: 6 }), first: ending, second: ending })
  .map(({ turns, ...endings }) => {
    const text = turns.map(({ who, what }) => `${who}: ${what.name}`);
    return named('transactions', { turns: text, ...endings }, (collection, client) =>
      runTransactions(collection, client, { turns, ...endings }),
    );
  });

interface Transactions {
  readonly turns: readonly { readonly who: string; readonly what: Writing }[];
  readonly first: string;
  readonly second: string;
}

/** What each statement answered, and each end. */
async function runTransactions(
  collection: Collection<Document>,
  client: MongoClient,
  { turns, first, second }: Transactions,
): Promise<string[]> {
  const sessions = new Map(['first', 'second'].map((name) => [name, client.startSession()]));
  for (const session of sessions.values()) session.startTransaction({ writeConcern: { w: 'majority' } });
  const answers: string[] = [];
  for (const [nth, { who, what }] of turns.entries()) {
    const session = sessions.get(who);
    // A write beside transactions waits for the one that has written the same document.
    const isHeld = turns.slice(0, nth).some((before) => before.who !== 'other' && before.what.key === what.key);
    if (session === undefined && isHeld) continue;
    const options = session === undefined ? {} : { session };
    const read = (): Promise<unknown> => collection.find({}, { sort: { _id: 1 }, ...options }).toArray();
    answers.push(await outcomeOf(async () => what.write(collection, options)), await outcomeOf(read));
  }
  for (const [name, end] of Object.entries({ first, second })) {
    const session = sessions.get(name) as ClientSession;
    answers.push(await outcomeOf(() => (end === 'commit' ? session.commitTransaction() : session.abortTransaction())));
    await session.endSession();
  }
  return answers;
}

/** What a write answers, and the same one again, as a driver sends it that got no answer, after another write. */
async function writeAgain(
  client: MongoClient,
  { collection, write: change, repeated }: { collection: Collection<Document>; write: Write; repeated: Document },
): Promise<unknown[]> {
  const session = client.startSession();
  const txnNumber = Long.fromNumber(++session.serverSession.txnNumber);
  const once = async (): Promise<unknown> => {
    const { value, n, nModified } = await client
      .db()
      .command({ ...writeCommand(collection, repeated), txnNumber }, { session });
    return { value, n, nModified };
  };
  const before = await once();
  await outcomeOf(async () => change(collection, {}));
  const again = await once();
  await session.endSession();
  return [before, again];
}

function writeCommand({ collectionName }: Collection<Document>, { query, update, isModify }: Document): Document {
  const writeConcern = { w: 'majority' };
  if (isModify) return { findAndModify: collectionName, query, update, new: true, writeConcern };
  return { update: collectionName, updates: [{ q: query, u: update }], writeConcern };
}

/** What a filter finds at a moment, before and after a write. */
async function findAsItWas(
  client: MongoClient,
  { collection, where, write: change }: { collection: Collection<Document>; where: Document; write: Write },
): Promise<Document[]> {
  const find = { find: collection.collectionName, filter: where, sort: { _id: 1 } };
  const read = async (atClusterTime?: unknown) => {
    const readConcern = { level: 'snapshot', ...(atClusterTime !== undefined && { atClusterTime }) };
    return (await client.db().command({ ...find, readConcern })).cursor;
  };
  const before = await read();
  await outcomeOf(async () => change(collection, {}));
  const after = await read(before.atClusterTime);
  return [before.firstBatch, after.firstBatch];
}

const operation: fc.Arbitrary<Named> = fc.oneof(
  { arbitrary: transactions, weight: 2 },
  {
    arbitrary: fc
      .tuple(
        write,
        fc.record({ query: plain, update: fc.record({ $set: fc.record({ b: number }) }), isModify: fc.boolean() }),
      )
      .map(([{ name, write: change }, repeated]) =>
        named('write again', { name, ...repeated }, (collection, client) =>
          writeAgain(client, { collection, write: change, repeated }),
        ),
      ),
    weight: 2,
  },
  fc
    .tuple(fc.array(document, { minLength: 1, maxLength: 3 }), fc.boolean())
    .map(([documents, ordered]) =>
      named('insertMany', { documents, ordered }, (collection) =>
        collection.insertMany(structuredClone(documents.map(copy)).map(copy), { ordered }),
      ),
    ),
  fc.tuple(filter, update, fc.boolean(), fc.boolean()).map(([where, change, many, upsert]) =>
    named('update', { where, change, many, upsert }, (collection) =>
      collection[many ? 'updateMany' : 'updateOne'](where, change, {
        upsert: upsert && where._id instanceof ObjectId,
      }),
    ),
  ),
  fc.tuple(filter, update, sort, fc.boolean()).map(([where, change, order, isAfter]) =>
    named('findOneAndUpdate', { where, change, order, isAfter }, (collection) =>
      collection.findOneAndUpdate(where, change as Document, {
        sort: order as never,
        returnDocument: isAfter ? 'after' : 'before',
      }),
    ),
  ),
  filter.map((where) => named('deleteMany', where, (collection) => collection.deleteMany(where))),
  fc
    .tuple(filter, sort)
    .map(([where, order]) =>
      named('findOneAndDelete', { where, order }, (collection) =>
        collection.findOneAndDelete(where, { sort: order as never }),
      ),
    ),
  fc
    .tuple(filter, sort, fc.integer({ min: 0, max: 3 }), projection)
    .map(([where, order, limit, fields]) =>
      named('find', { where, order, limit, fields }, (collection) =>
        collection.find(where, { sort: order as never, limit, projection: fields }).toArray(),
      ),
    ),
  fc
    .tuple(filter, write)
    .map(([where, one]) =>
      named('find as it was', { where, write: one.name }, (collection, client) =>
        findAsItWas(client, { collection, where, write: one.write }),
      ),
    ),
  filter.map((where) =>
    named('group', where, async (collection) => {
      const $group = { _id: '$b', rows: { $sum: 1 }, sum: { $sum: '$c.d' } };
      const found = await collection.aggregate([{ $match: where }, { $group }]).toArray();
      return found.map((one) => BSON.EJSON.stringify(one)).sort();
    }),
  ),
  filter.map((where) =>
    named('last of each', where, async (collection) => {
      const names = { $map: { input: { $objectToArray: '$_found' }, in: '$$this.k' } };
      const _more = { $ne: [{ $setDifference: [names, ['_id', 'b']] }, []] };
      const pipeline = [
        { $match: where },
        { $sort: { b: 1, _id: 1 } },
        { $group: { _id: '$b', _found: { $last: '$$ROOT' } } },
        { $project: { '_found._id': 1, '_found.c': 1, _b: '$_found.b', _more } },
      ];
      const found = await collection.aggregate(pipeline).toArray();
      return found.map((one) => BSON.EJSON.stringify(one)).sort();
    }),
  ),
  filter.map((where) => named('countDocuments', where, (collection) => collection.countDocuments(where))),
  fc
    .tuple(path, filter)
    .map(([key, where]) =>
      named('distinct', { key, where }, async (collection) =>
        (await collection.distinct(key, where)).map((one) => BSON.EJSON.stringify({ one })).sort(),
      ),
    ),
);

const copy = (given: Document): Document => BSON.deserialize(BSON.serialize(given));

const time = new VirtualTime();
const simulated = new SimulatedDatabase(time, 'differential', () => undefined);
let restore = (): void => undefined;
let real: MongoClient;

beforeAll(async () => {
  restore = replaceClock(time.clock());
  time.random = createRandom(7);
  real = await new MongoClient(testUri(), { ignoreUndefined: true, writeConcern: { w: 'majority' } }).connect();
});

afterAll(async () => {
  restore();
  await real.db().dropDatabase();
  await real.close();
});

/** What an operation ended with, comparable. */
async function outcomeOf(run: () => Promise<unknown>): Promise<string> {
  try {
    const result = (await run()) as Document | null;
    return BSON.EJSON.stringify({ result }, { relaxed: true });
  } catch (error) {
    if (!(error instanceof MongoError)) throw error;
    const { code, writeErrors = [] } = error as unknown as Document;
    const failed = [writeErrors].flat().map(({ index, code: nth }: Document) => `${index}: ${nth}`);
    return `${code} ${failed.join()}`;
  }
}

/** Lets virtual time pass until the promise is settled. */
async function settle<T>(work: () => Promise<T>): Promise<T> {
  let isSettled = false;
  let result: Promise<T> | undefined;
  await time.runAs(null, () => {
    result = work().finally(() => {
      isSettled = true;
    });
    result.catch(() => undefined);
  });
  while (!isSettled) await time.advance(5);
  return result as Promise<T>;
}

const eventOf = ({
  operationType,
  documentKey,
  fullDocument,
  fullDocumentBeforeChange,
  txnNumber,
}: Document): string => {
  const ofTransaction = txnNumber !== undefined;
  return BSON.EJSON.stringify({ operationType, documentKey, fullDocument, fullDocumentBeforeChange, ofTransaction });
};

const STREAM = [{ $changeStream: { fullDocument: 'whenAvailable', fullDocumentBeforeChange: 'whenAvailable' } }];

async function openStream(client: MongoClient, name: string): Promise<() => Promise<string[]>> {
  const db = client.db();
  const session = client.startSession();
  const pipeline = [...STREAM, { $match: { 'ns.coll': name } }];
  const opening = { aggregate: 1, pipeline, cursor: { batchSize: 0 }, readConcern: { level: 'majority' } };
  const { cursor } = await db.command(opening, { session, promoteLongs: false });
  return async () => {
    const read = { getMore: cursor.id, collection: '$cmd.aggregate', maxTimeMS: 50, batchSize: 1_000 };
    const events: string[] = [];
    for (;;) {
      const { cursor: page } = await db.command(read, { session });
      if (page.nextBatch.length === 0) break;
      events.push(...page.nextBatch.map(eventOf));
    }
    await db.command({ killCursors: '$cmd.aggregate', cursors: [cursor.id] }, { session });
    await session.endSession();
    return events;
  };
}

const everything = (collection: Collection<Document>): Promise<string> =>
  outcomeOf(() => collection.find({}, { sort: { _id: 1 } }).toArray());

test('gives the answers, documents and changes of the real database to random commands', async () => {
  let nth = 0;
  const property = fc.asyncProperty(fc.array(operation, { minLength: 5, maxLength: 25 }), async (operations) => {
    const name = `c${nth++}`;
    const changeStreamPreAndPostImages = { enabled: true };
    const ours = await real.db().createCollection(name, { changeStreamPreAndPostImages });
    const client = await settle(async () => simulatedClient(simulated));
    const theirs = client.db().collection(name);
    const realChanges = await openStream(real, name);
    const simulatedChanges = await settle(() => openStream(client, name));
    for (const { name: text, run } of operations) {
      const wanted = await outcomeOf(() => run(ours, real));
      const got = await settle(() => outcomeOf(() => run(theirs, client)));
      expect(`${text} → ${got}`).toBe(`${text} → ${wanted}`);
    }
    expect(await settle(() => everything(theirs))).toBe(await everything(ours));
    expect(await settle(simulatedChanges)).toEqual(await realChanges());
  });
  await fc.assert(property, { numRuns: runsOf(300), endOnFailure: true });
});
