/** Entities by key: reads of one turn are one command, and give just what each would have given by itself. */
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { type Document, MongoClient, ObjectId } from 'mongodb';
import { type Scope, scopeOf } from '../../src/core/access.js';
import type { Page } from '../../src/core/list.js';
import { builtInStore, type Store } from '../../src/core/stores.js';
import { getEntity, listEntities, readEntity, withKey } from '../../src/entities/read.js';
import { parseListQuery } from '../../src/platform/http/list-params.js';
import { readObjectId } from '../../src/platform/mongo/bson/reader.js';
import { type Database, databaseOf } from '../../src/platform/mongo/driver/client.js';
import { collectionOf } from '../../src/platform/mongo/schema/collections.js';
import { findByKey } from '../../src/platform/mongo/schema/lookup.js';
import { useService } from '../support/fixture.js';
import { fc, runsOf } from '../support/runs.js';

const service = useService();
const IDS = Array.from({ length: 4 }, () => new ObjectId());
const commands: Document[] = [];
let database: Database;

beforeAll(async () => {
  const client = await new MongoClient(service.mongodbUri, { monitorCommands: true }).connect();
  client.on('commandStarted', ({ command }) => commands.push(command));
  database = databaseOf(client);
});

afterAll(() => database.client.close());

beforeEach(() => void commands.splice(0));

const asked = (collection: string): Document[] => commands.filter(({ find }) => find === collection);
const id = fc.constantFrom(...IDS);
const some = fc.subarray(IDS);
const scope = fc.record({ userId: id, groupId: id }).map(({ userId, groupId }) => toScope(userId, groupId));
const toScope = (userId: ObjectId, groupId: ObjectId): Scope =>
  scopeOf({ userId: userId.toHexString(), groupId: groupId.toHexString() });
const document = (store: Store) =>
  fc
    .record({ id: fc.constantFrom('a', 'é"', IDS[0]?.toHexString() ?? ''), owner: id, branch: some, access: some })
    .chain((one) =>
      fc.record({ ...(store.builtIn && { _builtin: fc.boolean() }) }).map((more) => ({ ...one, ...more })),
    )
    .map((one) => ({ _id: new ObjectId(), ...one }) as Document);

describe.each(['objects', 'models'])('the store %s', (name) => {
  const store = builtInStore(name);

  test('returns to each caller what a separate query would', async () => {
    const documents = fc.uniqueArray(document(store), {
      selector: (one) => one.id,
      minLength: 1,
      maxLength: 3,
    });
    const property = fc.asyncProperty(
      documents,
      fc.array(scope, { minLength: 1, maxLength: 3 }),
      async (given, scopes) => {
        await collectionOf(database, store).insertMany(given);
        const keys = [...given.flatMap(({ _id, id }) => [_id.toHexString(), id]), IDS[1]?.toHexString(), 'missing'];
        const wanted = scopes.flatMap((one) => keys.map((key) => ({ key, scope: one })));
        const plain = (one: (typeof wanted)[number]) =>
          withKey(database, store, one.scope, one.key, (filter) => collectionOf(database, store).findOne(filter));
        const [alone, shared] = await Promise.all([
          Promise.all(wanted.map(plain)),
          Promise.all(wanted.map((one) => findByKey(database, store, one.scope, one.key))),
        ]);
        await collectionOf(database, store).deleteMany({ _id: { $in: given.map(({ _id }) => _id) } });
        expect(shared.map((found) => found && readObjectId(found))).toEqual(
          alone.map((found) => found && String(found._id)),
        );
      },
    );
    await fc.assert(property, { numRuns: runsOf(30) });
  });
});

describe('the reads of one turn', () => {
  const store = builtInStore('labels');
  const everyone = toScope(IDS[0] as ObjectId, IDS[1] as ObjectId);
  const create = async (name: string): Promise<string> => {
    const { insertedId } = await collectionOf(database, store).insertOne({ name, branch: [IDS[1]], access: [] });
    return insertedId.toHexString();
  };

  test('share one command, with each key once', async () => {
    const keys = [await create('a'), await create('b')];
    const wanted = [...keys, ...keys, new ObjectId().toHexString()];
    const answers = await Promise.allSettled(wanted.map((key) => getEntity(database, store, everyone, key)));
    expect(answers.map((answer) => (answer.status === 'fulfilled' ? answer.value.name : answer.reason.status))).toEqual(
      ['a', 'b', 'a', 'b', 404],
    );
    expect(asked('labels').map(({ filter }) => filter._id.$in.length)).toEqual([3]);
    // All that there is came at once, and the database knows.
    expect(commands.filter(({ getMore }) => getMore !== undefined)).toEqual([]);
  });

  test('exclude requests that arrive after the command was sent', async () => {
    const key = await create('a');
    const first = getEntity(database, store, everyone, key);
    while (asked('labels').length === 0) await turn();
    const second = getEntity(database, store, everyone, key);
    await Promise.all([first, second]);
    expect(asked('labels')).toHaveLength(2);
  });

  test('use several commands for many keys', async () => {
    const keys = Array.from({ length: 250 }, () => new ObjectId().toHexString());
    await Promise.all(keys.map((key) => findByKey(database, store, everyone, key)));
    expect(asked('labels').map(({ filter }) => filter._id.$in.length)).toEqual([100, 100, 50]);
  });

  test('return complete answers larger than one batch of the database', async () => {
    const text = 'x'.repeat(1_000_000);
    const keys = await Promise.all(Array.from({ length: 20 }, (_, nth) => create(`${nth}${text}`)));
    const answers = await Promise.all(keys.map((key) => readEntity(database, store, everyone, key)));
    expect(answers.map((answer) => JSON.parse(answer.toString()).name.length - text.length)).toEqual(
      keys.map((_, nth) => String(nth).length),
    );
    expect(asked('labels')).toHaveLength(1);
  });

  test('omit hidden fields', async () => {
    const users = builtInStore('users');
    const user = { login: 'hidden', _password: 'secret', branch: [IDS[1]], access: [] };
    const { insertedId } = await collectionOf(database, users).insertOne(user);
    const text = (await readEntity(database, users, everyone, insertedId.toHexString())).toString();
    expect(text).toContain('"login":"hidden"');
    expect(text).not.toContain('secret');
  });
});

describe('objects with their state', () => {
  const store = builtInStore('objects');
  const everyone = toScope(IDS[0] as ObjectId, IDS[1] as ObjectId);
  const packets = () => database.db.collection('packets');
  const create = async (times: readonly number[]): Promise<string> => {
    const _id = new ObjectId();
    await collectionOf(database, store).insertOne({ _id, id: `own-${_id}`, branch: [IDS[1]], access: [] });
    // Stored in another order than they happened; of the same time, the later stamp is the later packet.
    const stored = times.map((time, nth) => ({ _oid: _id, time, _ts: nth, nth }));
    if (stored.length > 0) await packets().insertMany(stored);
    return _id.toHexString();
  };
  const read = async (key: string): Promise<Document> =>
    JSON.parse((await readEntity(database, store, everyone, key)).toString());
  const questions = () => commands.filter(({ find, aggregate }) => find !== undefined || aggregate !== undefined);

  test('are read with one command, each with its latest packet or none', async () => {
    const keys = [await create([5, 9, 7]), await create([]), await create([3, 3])];
    commands.splice(0);
    const found = await Promise.all([...keys, ...keys].map(read));
    expect(found.map(({ _id, state }) => [_id, state?.nth])).toEqual(
      [...keys, ...keys].map((key, at) => [key, [1, undefined, 1][at % 3]]),
    );
    expect(questions().map(({ aggregate }) => aggregate)).toEqual(['objects']);
    expect(commands.filter(({ getMore }) => getMore !== undefined)).toEqual([]);
  });

  test('are read singly with the same state, by `_id` and own id', async () => {
    const key = await create([5, 9, 7]);
    const byId = await read(key);
    expect(byId.state).toMatchObject({ time: 9, _ts: 1 });
    expect(await read(`own-${key}`)).toEqual(byId);
  });

  test('cost the same with a long history as with a short one', async () => {
    const keys = [await create(Array.from({ length: 1_000 }, (_, nth) => nth)), await create([1])];
    for (const some of [keys.slice(0, 1), keys]) {
      commands.splice(0);
      await Promise.all(some.map(read));
      const { aggregate, pipeline, cursor } = questions()[0] as Document;
      const explain = { aggregate, pipeline, cursor };
      const plan = await database.db.command({ explain, verbosity: 'executionStats' });
      const examined = [...JSON.stringify(plan).matchAll(/"total(?:Keys|Docs)Examined":(\d+)/g)].map(([, n]) =>
        Number(n),
      );
      expect(examined.length).toBeGreaterThanOrEqual(4);
      expect(Math.max(...examined)).toBeLessThan(10);
    }
  });

  test('do not come into existence through packets alone', async () => {
    const _oid = new ObjectId();
    await packets().insertOne({ _oid, time: 1, _ts: 1 });
    await expect(read(_oid.toHexString())).rejects.toMatchObject({ status: 404 });
  });

  test('are returned completely beyond one batch of the database', async () => {
    const text = 'x'.repeat(900_000);
    const keys = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const key = await create([]);
        await packets().insertOne({ _oid: new ObjectId(key), time: 1, _ts: 1, text });
        await collectionOf(database, store).updateOne({ _id: new ObjectId(key) }, { $set: { text } });
        return key;
      }),
    );
    commands.splice(0);
    const found = await Promise.all(keys.map(read));
    expect(found.every((one) => one.text === text && one.state.text === text)).toBe(true);
    expect(questions()).toHaveLength(1);
  });
});

describe('pages of lists', () => {
  const store = builtInStore('geofences');
  const page = parseListQuery({ limit: '2' }) as Page;
  const one = toScope(IDS[0] as ObjectId, IDS[1] as ObjectId);
  const other = toScope(IDS[0] as ObjectId, IDS[2] as ObjectId);

  test('share one read if identical callers request the same page in one turn', async () => {
    const common = { branch: [IDS[1]], access: [] };
    await collectionOf(database, store).insertMany([
      { ...common, name: 'a' },
      { ...common, name: 'b' },
    ]);
    const pages = await Promise.all([
      listEntities(database, store, one, page),
      listEntities(database, store, one, page),
      listEntities(database, store, one, { ...page, limit: 1 }),
      listEntities(database, store, other, page),
      listEntities(database, store, one, page, { conditions: [{ name: 'b' }], isShort: false }),
    ]);
    expect(pages.map(({ count }) => count)).toEqual([2, 2, 1, 0, 1]);
    expect(pages[1]?.body).toBe(pages[0]?.body);
    expect(asked('geofences')).toHaveLength(4);
  });

  test('share nothing where one of them leaves out what is read because of objects', async () => {
    const labels = builtInStore('labels');
    const above = new ObjectId();
    const below = new ObjectId();
    const scope = toScope(new ObjectId(), below);
    await database.db.collection('objects').insertOne({ group: below, branch: [above, below], owner: new ObjectId() });
    await database.db.collection('groups').insertOne({ _id: below, name: 'below', branch: [above, below] });
    await database.db.collection('labels').insertOne({ name: 'above', group: above, branch: [above] });
    const found = await Promise.all([
      listEntities(database, { ...labels, throughObjects: null }, scope, page),
      listEntities(database, labels, scope, page),
    ]);
    expect(found.map(({ count }) => count)).toEqual([0, 1]);
  });

  test('share a refusal', async () => {
    const users = builtInStore('users');
    const wrong = { ...page, sort: { path: '_password', descending: false } };
    const answers = await Promise.allSettled([1, 2].map(() => listEntities(database, users, one, wrong)));
    expect(answers.map((answer) => answer.status === 'rejected' && answer.reason.status)).toEqual([400, 400]);
  });
});
