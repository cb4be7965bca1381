/** What single migrations do with what an older version has stored. */
import { afterEach, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import type { Database } from '../../src/db/driver/client.js';
import { connectDatabase } from '../../src/db/schema/connect.js';
import { commandOwners } from '../../src/db/schema/migrations/0003-command-owners.js';
import { storeNames } from '../../src/db/schema/migrations/0004-store-names.js';
import { ROOT_GROUP_ID } from '../../src/model/builtin.js';
import { testUri } from '../support/fixture.js';

const endings: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

async function connect(): Promise<Database> {
  const database = await connectDatabase(testUri());
  endings.push(
    () => database.client.close(),
    () => database.db.dropDatabase(),
  );
  return database;
}

const never = new AbortController().signal;

test('hides commands from creators who neither own the object nor share it', async () => {
  const database = await connect();
  const { db } = database;
  const [owner, sharing, former] = [new ObjectId(), new ObjectId(), new ObjectId()];
  const [object, gone] = [new ObjectId(), new ObjectId()];
  await db.collection('objects').insertOne({ _id: object, id: 'x', owner, access: [sharing] });
  const by = (who: ObjectId, of: ObjectId, more: object = {}) => ({
    ...{ _id: new ObjectId(), owner: who, object: of, access: [sharing] },
    ...more,
  });
  const commands = [
    ...[owner, sharing, former].map((who) => by(who, object)),
    ...[sharing, former].map((who) => by(who, gone)),
    by(former, object, { _withoutOwner: false }),
  ];
  await db.collection('commands').insertMany(commands);
  await commandOwners.run(database, never);
  await commandOwners.run(database, never);
  const stored = await db.collection('commands').find().sort({ _id: 1 }).toArray();
  expect(stored.map(({ _withoutOwner }) => _withoutOwner)).toEqual([false, false, true, false, true, false]);
});

test('migrates more commands than one batch', async () => {
  const database = await connect();
  const commands = database.db.collection('commands');
  const [owner, object] = [new ObjectId(), new ObjectId()];
  await commands.insertMany(Array.from({ length: 2_500 }, () => ({ _id: new ObjectId(), owner, object, access: [] })));
  await commandOwners.run(database, never);
  expect(await commands.countDocuments({ _withoutOwner: true })).toBe(2_500);
});

test('renames collections of custom stores, and marks stores of the root group as shared', async () => {
  const database = await connect();
  const { db } = database;
  const stores = db.collection('stores');
  await stores.createIndex({ name: 1 }, { unique: true });
  const [all, own] = [new ObjectId(), new ObjectId()];
  await stores.insertMany([
    { _id: all, name: 'all', group: new ObjectId(ROOT_GROUP_ID) },
    { _id: own, name: 'own', group: new ObjectId() },
  ]);
  await db.collection('custom.all').insertOne({ x: 1 });
  await storeNames.run(database, never);
  await storeNames.run(database, never);
  expect(await db.collection(`custom.all.${all}`).countDocuments({ x: 1 })).toBe(1);
  expect(await db.collection('custom.all').countDocuments()).toBe(0);
  expect((await stores.find().sort({ _id: 1 }).toArray()).map(({ shared }) => shared)).toEqual([true, undefined]);
  expect((await stores.indexes()).map(({ name }) => name)).not.toContain('name_1');
});
