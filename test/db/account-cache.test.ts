/** What is known of accounts is forgotten where a change made it untrue, and nowhere else. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { MongoClient, ObjectId } from 'mongodb';
import { type Accounts, createAccounts } from '../../src/accounts/accounts.js';
import { databaseOf } from '../../src/platform/mongo/driver/client.js';
import { testUri } from '../support/fixture.js';

const client = new MongoClient(testUri(), { monitorCommands: true });
const asked: string[] = [];
const [role, otherRole, object, otherObject, group] = Array.from({ length: 5 }, () => new ObjectId()) as ObjectId[];
let accounts: Accounts;
let users: string[];

beforeAll(async () => {
  await client.connect();
  const db = client.db();
  await db.collection('roles').insertMany([role, otherRole].map((_id) => ({ _id, credentials: ['GET /objects'] })));
  await db.collection('objects').insertMany([object, otherObject].map((_id, nth) => ({ _id, id: `o${nth}` })));
  const { insertedIds } = await db.collection('users').insertMany([
    { login: 'a', role, group },
    { login: 'b', role: otherRole, group },
    { login: 'c', role: otherRole, group, object },
    { login: 'd', role: otherRole, group, object: otherObject },
  ]);
  users = Object.values(insertedIds).map(String);
  client.on('commandStarted', ({ command }) => command.find === 'users' && asked.push(String(command.filter._id)));
  accounts = createAccounts(databaseOf(client), () => true);
});
afterAll(async () => {
  await client.db().dropDatabase();
  await client.close();
});

/** Which users are read when all are asked for. */
async function readNow(): Promise<string[]> {
  asked.length = 0;
  const found = await Promise.all(users.map((id) => accounts.findAccount(id)));
  expect(found.map((account) => account?.login)).toEqual(['a', 'b', 'c', 'd']);
  return [...asked].sort();
}

test.each([
  ['a user', () => ({ store: 'users', id: users[1] as string }), [1]],
  ['a role', () => ({ store: 'roles', id: String(role) }), [0]],
  ['a role without users', () => ({ store: 'roles', id: String(new ObjectId()) }), []],
  ['an object that is a user’s own', () => ({ store: 'objects', id: String(object) }), [2]],
  ['an unassigned object', () => ({ store: 'objects', id: String(new ObjectId()) }), []],
] as const)('reads only outdated accounts again after a change of %s', async (_, change, stale) => {
  await readNow();
  accounts.invalidate(change());
  expect(await readNow()).toEqual(stale.map((nth) => users[nth] as string).sort());
});

describe('those who ask at the same time', () => {
  const askAll = async (of: Accounts, id: string, times = 3): Promise<void> => {
    asked.length = 0;
    await Promise.all(Array.from({ length: times }, () => of.findAccount(id)));
  };

  test.each([
    ['a user', () => users[0] as string],
    ['a user who does not exist', () => String(new ObjectId())],
  ])('share one read of %s', async (_, idOf) => {
    const id = idOf();
    accounts.invalidate({ store: 'users', id });
    await askAll(accounts, id);
    expect(asked).toEqual([id]);
  });

  test('share no read that began before a change', async () => {
    const id = users[0] as string;
    accounts.invalidate({ store: 'users', id });
    asked.length = 0;
    const early = accounts.findAccount(id);
    await client
      .db()
      .collection('users')
      .updateOne({ login: 'a' }, { $set: { active: false } });
    accounts.invalidate({ store: 'users', id });
    expect(await accounts.findAccount(id)).toBeNull();
    await early;
    expect(asked).toEqual([id, id]);
  });

  test('share no read while changes do not arrive', async () => {
    const id = users[1] as string;
    await askAll(
      createAccounts(databaseOf(client), () => false),
      id,
    );
    expect(asked).toEqual([id, id, id]);
  });
});
