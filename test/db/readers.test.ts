/** Who reads the packets of many objects: asked for together, and kept true by changes. */
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { MongoClient, ObjectId } from 'mongodb';
import { databaseOf } from '../../src/db/connect.js';
import { createReaders, type Readers } from '../../src/db/readers.js';
import type { Change } from '../../src/model/change.js';
import { LIMITS } from '../../src/model/limits.js';
import { testUri } from '../support/fixture.js';

const owner = new ObjectId();
const ids = Array.from({ length: 500 }, () => new ObjectId());
const texts = ids.map(String);
const client = new MongoClient(testUri(), { monitorCommands: true });
const questions: string[] = [];
const NOBODYS = { owner: 'x', branch: [], access: [] };
let readers: Readers;

beforeAll(async () => {
  const objects = ids.map((_id) => ({ _id, owner, branch: [], access: [] }));
  await client.db().collection('objects').insertMany(objects);
  client.on('commandStarted', ({ commandName }) => void questions.push(commandName));
});
beforeEach(() => {
  readers = createReaders(databaseOf(client));
  questions.length = 0;
});
afterAll(async () => {
  await client.db().dropDatabase();
  await client.close();
});

const areKnown = (): boolean => texts.every((id) => Array.isArray(readers.find(id)));

test('asks once for the readers of all objects of a batch, and again only after all was forgotten', async () => {
  await readers.prepare(texts);
  expect([areKnown(), questions]).toEqual([true, ['find']]);
  await readers.prepare(texts);
  expect(questions).toEqual(['find']);
  readers.forgetAll();
  await readers.prepare(texts);
  expect([areKnown(), questions]).toEqual([true, ['find', 'find']]);
});

test('gives what it would have found object by object', async () => {
  const others = createReaders(databaseOf(client));
  await readers.prepare(texts.slice(0, 3));
  for (const id of texts.slice(0, 3)) expect(readers.find(id)).toEqual(await others.find(id));
});

test('knows that an object is gone without another question, until there is one of that id', async () => {
  const gone = String(new ObjectId());
  await readers.prepare([gone]);
  expect([await readers.find(gone), questions]).toEqual([null, ['find']]);
  const guard = { owner: String(owner), branch: [], access: [] };
  const change = { store: 'objects', kind: 'created', id: gone, guard, changed: null };
  readers.apply(change as unknown as Change);
  expect(await readers.find(gone)).not.toBeNull();
});

test('knows all of a batch however many objects there are beside it', async () => {
  for (let nth = 0; nth < LIMITS.cachedReaders; nth++) {
    const change = { store: 'objects', kind: 'created', id: `${nth}`, guard: NOBODYS, changed: null };
    readers.apply(change as unknown as Change);
  }
  await readers.prepare(texts);
  expect([areKnown(), questions]).toEqual([true, ['find']]);
});
