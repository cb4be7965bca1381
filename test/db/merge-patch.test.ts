/** A patch as an update of the database: it does what merging says, on a real mongod. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Collection, type Document, MongoClient, ObjectId } from 'mongodb';
import { merge } from '../../src/core/entity.js';
import type { JsonObject } from '../../src/core/json.js';
import { builtInStore } from '../../src/core/stores.js';
import { toMergeFields } from '../../src/entities/merge-patch.js';
import { toDocument } from '../../src/platform/mongo/schema/mapping.js';
import { testUri } from '../support/fixture.js';
import { fc, runsOf } from '../support/runs.js';

let client: MongoClient;
let collection: Collection<Document>;

beforeAll(async () => {
  client = await new MongoClient(testUri()).connect();
  collection = client.db().collection('merged');
});

afterAll(async () => {
  await client.db().dropDatabase();
  await client.close();
});

async function mergeInDatabase(before: Document, patch: Document): Promise<Document> {
  const _id = new ObjectId();
  await collection.insertOne({ ...before, _id });
  const { _id: _, ...after } = (await collection.findOneAndUpdate(
    { _id },
    [{ $replaceWith: { $mergeObjects: ['$$ROOT', toMergeFields(patch)] } }],
    {
      returnDocument: 'after',
    },
  )) as Document;
  return after;
}

// Few names, so that patches meet what is there; some that mean something to an expression or a path elsewhere.
const name = fc.constantFrom('a', 'b', 'c', '0', '1', 'a$b', 'x y', 'name', 'literal', 'имя', 'length');
const scalar = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).filter((n) => !Object.is(n, -0)),
  fc.constantFrom('', '$a', '$$ROOT', '$$REMOVE', '$a.b', '$literal', 'text', '🚗'),
);
const { object } = fc.letrec<{ value: unknown; object: JsonObject }>((tie) => ({
  value: fc.oneof({ maxDepth: 4 }, scalar, fc.array(tie('value'), { maxLength: 3 }), tie('object')),
  object: fc.dictionary(name, tie('value'), { maxKeys: 4, noNullPrototype: true }) as fc.Arbitrary<JsonObject>,
}));

describe('a patch as an update of the database', () => {
  test('equals a merge in memory, for any entity and patch', async () => {
    await fc.assert(
      fc.asyncProperty(object, object, async (before, patch) => {
        expect(await mergeInDatabase(before, patch)).toEqual(merge(before, patch));
      }),
      { numRuns: runsOf(500) },
    );
  });

  test('keeps the order of fields, and appends new ones', async () => {
    const before = { z: 1, y: { q: 1, p: 2 }, x: 3 };
    const patch = { x: 4, w: 5, y: { o: 3, q: 9 } };
    expect(JSON.stringify(await mergeInDatabase(before, patch))).toBe(JSON.stringify(merge(before, patch)));
  });

  test('treats no text of a client as an expression, in values or names', async () => {
    await expect(mergeInDatabase({ secret: 1 }, { a: '$secret', b: ['$secret'], c: { d: '$$ROOT' } })).resolves.toEqual(
      {
        secret: 1,
        a: '$secret',
        b: ['$secret'],
        c: { d: '$$ROOT' },
      },
    );
  });

  test('merges to the maximum depth of bodies', async () => {
    const deep = (leaf: object): JsonObject =>
      Array.from({ length: 19 }).reduce<object>((inner) => ({ a: inner }), leaf) as JsonObject;
    expect(await mergeInDatabase(deep({ b: 1 }), deep({ c: 2 }))).toEqual(deep({ b: 1, c: 2 }));
    expect(await mergeInDatabase({ a: 1 }, deep({ c: 2 }))).toEqual(deep({ c: 2 }));
  });

  test('replaces references of the service', async () => {
    const old = new ObjectId();
    const next = new ObjectId();
    const patch = toDocument(builtInStore('objects'), {
      model: next.toHexString(),
      models: { id: next.toHexString() },
    });
    expect(await mergeInDatabase({ model: old, models: { id: old } }, patch)).toEqual({
      model: next,
      models: { id: next },
    });
  });
});
