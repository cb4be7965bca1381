/** What is known of accounts is forgotten where a change made it untrue, and nowhere else. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
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
