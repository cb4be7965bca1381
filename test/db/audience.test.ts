/** Who reads the packets of many objects: asked for together, and kept true by changes. */
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { MongoClient, ObjectId } from 'mongodb';
import type { Change } from '../../src/core/change.js';
import { LIMITS } from '../../src/core/limits.js';
import { type AudienceCache, createAudienceCache } from '../../src/live/audience.js';
import { databaseOf } from '../../src/platform/mongo/driver/client.js';
import { testUri } from '../support/fixture.js';

const owner = new ObjectId();
const ids = Array.from({ length: 500 }, () => new ObjectId());
const texts = ids.map(String);
const client = new MongoClient(testUri(), { monitorCommands: true });
const questions: string[] = [];
const NOBODYS = { owner: 'x', branch: [], access: [] };
let readers: AudienceCache;

beforeAll(async () => {
  const objects = ids.map((_id) => ({ _id, owner, branch: [], access: [] }));
  await client.db().collection('objects').insertMany(objects);
  client.on('commandStarted', ({ commandName }) => void questions.push(commandName));
});
beforeEach(() => {
  readers = createAudienceCache(databaseOf(client), () => null);
  questions.length = 0;
});
afterAll(async () => {
  await client.db().dropDatabase();
  await client.close();
});

const areKnown = (): boolean => texts.every((id) => Array.isArray(readers.find(id)));

test('loads the audiences of a batch with one query, and again only after all were invalidated', async () => {
  await readers.prepare(texts);
  expect([areKnown(), questions]).toEqual([true, ['find']]);
  await readers.prepare(texts);
  expect(questions).toEqual(['find']);
  readers.invalidateAll();
  await readers.prepare(texts);
  expect([areKnown(), questions]).toEqual([true, ['find', 'find']]);
});

test('finds the same audiences as object by object', async () => {
  const others = createAudienceCache(databaseOf(client), () => null);
  await readers.prepare(texts.slice(0, 3));
  for (const id of texts.slice(0, 3)) expect(readers.find(id)).toEqual(await others.find(id));
});

test('caches that an object does not exist, until one with this id is created', async () => {
  const gone = String(new ObjectId());
  await readers.prepare([gone]);
  expect([await readers.find(gone), questions]).toEqual([null, ['find']]);
  const accessFields = { owner: String(owner), branch: [], access: [] };
  const change = { store: 'objects', kind: 'created', id: gone, accessFields, changed: null };
  readers.apply(change as unknown as Change);
  expect(await readers.find(gone)).not.toBeNull();
});

test('keeps the audiences of a batch however many objects were cached before', async () => {
  for (let nth = 0; nth < LIMITS.cachedAudiences; nth++) {
    const change = { store: 'objects', kind: 'created', id: `${nth}`, accessFields: NOBODYS, changed: null };
    readers.apply(change as unknown as Change);
  }
  await readers.prepare(texts);
  expect([areKnown(), questions]).toEqual([true, ['find']]);
});
