/** The rule of visibility in all its forms: they agree for random entities and callers, on a real mongod. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Collection, type Document, MongoClient, ObjectId } from 'mongodb';
import { addressesOf, audienceOf, scopeOf } from '../../src/core/access.js';
import { builtInStore } from '../../src/core/stores.js';
import { prepareCollections } from '../../src/platform/mongo/schema/collections.js';
import {
  isVisible,
  scopeFilter,
  visibilityIndexes,
  visibleExpression,
} from '../../src/platform/mongo/schema/visibility.js';
import { testUri } from '../support/fixture.js';
import { fc, runsOf } from '../support/runs.js';

const STORES = ['objects', 'models', 'commands'] as const;
let client: MongoClient;
const collectionOf = (store: string): Collection<Document> => client.db().collection(store);

beforeAll(async () => {
  client = await new MongoClient(testUri()).connect();
  await prepareCollections(client.db());
});

afterAll(async () => {
  await client.db().dropDatabase();
  await client.close();
});

// Users and groups share a few ids, so that an id of one kind is never taken for the other.
const id = fc.integer({ min: 1, max: 4 }).map((number) => String(number).padStart(24, '0'));
const ids = fc.uniqueArray(id, { maxLength: 3 });
const entity = fc.record({ owner: id, branch: ids, access: ids, builtIn: fc.boolean(), withoutOwner: fc.boolean() });
type Drawn = typeof entity extends fc.Arbitrary<infer T> ? T : never;

const toIds = (texts: readonly string[]): ObjectId[] => texts.map((text) => new ObjectId(text));

const toStored = ({ owner, branch, access, builtIn, withoutOwner }: Drawn): Document => ({
  _id: new ObjectId(),
  owner: new ObjectId(owner),
  branch: toIds(branch),
  access: toIds(access),
  ...(builtIn && { _builtin: true }),
  ...(withoutOwner && { _withoutOwner: true }),
});

const idsOf = (documents: readonly Document[]): string[] => documents.map(({ _id }) => String(_id)).sort();

test('gives the same entities as a filter, an expression, bytes and addresses', async () => {
  const outcomes = { visible: 0, hidden: 0 };
  const property = fc.asyncProperty(
    fc.constantFrom(...STORES),
    fc.array(entity, { minLength: 1, maxLength: 30 }),
    fc.record({ userId: id, groupId: id }),
    async (name, drawn, caller) => {
      const store = builtInStore(name);
      const scope = scopeOf(caller);
      const collection = collectionOf(name);
      const entities = drawn.map((one) => ({ ...one, stored: toStored(one) }));
      await collection.deleteMany({});
      await collection.insertMany(entities.map(({ stored }) => stored));
      const filtered = idsOf(await collection.find(scopeFilter(store, scope)).toArray());
      expect(idsOf(await collection.find({ $expr: visibleExpression(store, scope) }).toArray())).toEqual(filtered);
      const raw = await collection.find({}, { raw: true }).toArray();
      const visible = raw.filter((bytes) => isVisible(store, scope, bytes as unknown as Uint8Array)).length;
      const byAddress = entities.filter(({ stored: _, ...one }) => {
        const owner = store.followsObject && one.withoutOwner ? 'missing' : one.owner;
        const addresses = audienceOf({ ...one, owner });
        return (store.builtIn && one.builtIn) || addressesOf(scope).some((address) => addresses.includes(address));
      });
      expect(idsOf(byAddress.map(({ stored }) => stored))).toEqual(filtered);
      // The bytes of a command do not decide about its owner.
      if (store.followsObject) expect(visible).toBeLessThanOrEqual(filtered.length);
      else expect(visible).toBe(filtered.length);
      outcomes.visible += filtered.length;
      outcomes.hidden += drawn.length - filtered.length;
    },
  );
  await fc.assert(property, { numRuns: runsOf(200) });
  expect(Math.min(outcomes.visible, outcomes.hidden)).toBeGreaterThan(20);
});

test.each(STORES)('uses an index for each condition of the filter of %s', async (name) => {
  const store = builtInStore(name);
  const filter = scopeFilter(store, scopeOf({ userId: '0'.repeat(24), groupId: '1'.repeat(24) }));
  const { queryPlanner } = await collectionOf(name).find(filter).explain('queryPlanner');
  const plan = JSON.stringify(queryPlanner.winningPlan);
  expect(plan).not.toContain('COLLSCAN');
  for (const { key } of visibilityIndexes(store)) {
    expect(plan).toContain(`"indexName":"${Object.keys(key)[0]}_1__id_1"`);
  }
});
