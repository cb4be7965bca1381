/** Changes of one moment: one command, each made or refused as it would be alone, and only for those who see the entity. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { type Document, MongoClient, ObjectId } from 'mongodb';
import { scopeOf } from '../../src/core/access.js';
import type { Entity } from '../../src/core/entity.js';
import { toApiError } from '../../src/core/errors.js';
import type { JsonObject } from '../../src/core/json.js';
import { LIMITS } from '../../src/core/limits.js';
import { builtInStore } from '../../src/core/stores.js';
import { readChanged } from '../../src/entities/read.js';
import { changeEntity, createEntity, newId, shareEntity } from '../../src/entities/write.js';
import { type Database, databaseOf } from '../../src/platform/mongo/driver/client.js';
import { useService } from '../support/fixture.js';
import { fc, runsOf } from '../support/runs.js';

const service = useService();
const OBJECTS = builtInStore('objects');
const GROUP = newId();
const SCOPE = scopeOf({ userId: newId(), groupId: GROUP });
let database: Database;
let commands: string[] = [];

beforeAll(async () => {
  const client = await new MongoClient(service.mongodbUri, { monitorCommands: true }).connect();
  client.on('commandStarted', ({ commandName, command }) => {
    if (commandName === 'bulkWrite') commands.push(`bulkWrite ${command.ops.length}`);
    if (commandName === 'update') commands.push(`update ${command.updates.length}`);
  });
  database = databaseOf(client);
});

afterAll(() => database.client.close());

beforeEach(async () => {
  await database.db.collection('objects').deleteMany({});
  commands = [];
});

const newEntity = (id: string, fields: Partial<Entity> = {}): Entity => ({
  _id: newId(),
  id,
  name: id,
  owner: newId(),
  group: GROUP,
  branch: [GROUP],
  access: [],
  time: 1,
  ...fields,
});

const createAll = (entities: readonly Entity[]): Promise<Entity[]> =>
  Promise.all(entities.map((entity) => createEntity(database, OBJECTS, entity)));

const entityOf = async (id: string): Promise<Entity> =>
  JSON.parse((await readChanged(database, OBJECTS, id)).toString());

const change = async (key: string, patch: JsonObject, { scope = SCOPE, nowMs = 1_000 } = {}): Promise<Entity> =>
  entityOf(await changeEntity(database, OBJECTS, scope, key, { patch, nowMs }));

const outcomeOf = async (changing: Promise<Entity>): Promise<string> =>
  changing.then(
    ({ id, status }) => `${id}: ${status}`,
    (error) => `${toApiError(error).status} ${toApiError(error).help ?? ''}`.trim(),
  );

const storedAt = (_id: string): Promise<Document | null> =>
  database.db.collection('objects').findOne({ _id: new ObjectId(_id) });

test('applies the changes of one turn with one command, and returns each changed entity', async () => {
  const entities = Array.from({ length: 30 }, (_, nth) => newEntity(`object-${nth}`));
  await createAll(entities);
  const outcomes = entities.map(({ _id }, nth) => outcomeOf(change(_id, { status: `on tour ${nth}` })));
  expect(await Promise.all(outcomes)).toEqual(entities.map(({ id }, nth) => `${id}: on tour ${nth}`));
  expect(commands).toEqual(['bulkWrite 30']);
  expect(await storedAt(entities[7]?._id as string)).toMatchObject({
    status: 'on tour 7',
    _at: 1_000,
    name: 'object-7',
  });
});

describe('a refused change', () => {
  test('fails alone, with the same message as a single change', async () => {
    const entities = await createAll(['a', 'b', 'c', 'taken'].map((id) => newEntity(id)));
    const [a, b, c] = entities.map(({ _id }) => _id) as [string, string, string];
    const alone = await outcomeOf(change(b, { id: 'taken' }));
    expect(alone).toBe('409 id: already taken');
    const outcomes = [
      change(a, { status: 'x' }),
      change(b, { id: 'taken', status: 'y' }),
      change(newId(), { status: 'unseen' }),
      change(c, { status: 'z' }),
      change('taken', { status: 'by own id' }),
      change('unknown', { status: 'unseen' }),
      change(a, { note: 'n'.repeat(LIMITS.entityStoredBytes) }),
    ];
    expect(await Promise.all(outcomes.map(outcomeOf))).toEqual([
      'a: x',
      alone,
      '404',
      'c: z',
      'taken: by own id',
      '404',
      `413 the entity would become larger than ${LIMITS.entityStoredBytes} bytes`,
    ]);
    expect(await storedAt(b)).not.toHaveProperty('status');
    expect(await storedAt(a)).not.toHaveProperty('note');
  });

  test('fails for all callers while the database is unavailable', async () => {
    const [entity] = await createAll([newEntity('a')]);
    const client = await new MongoClient(service.mongodbUri).connect();
    const other = databaseOf(client);
    await client.close(true);
    const changing = ['x', 'y'].map((status) =>
      changeEntity(other, OBJECTS, SCOPE, entity?._id as string, { patch: { status }, nowMs: 1 }),
    );
    expect(await Promise.all(changing.map((one) => outcomeOf(one.then(entityOf))))).toEqual([
      expect.stringMatching(/^503/),
      expect.stringMatching(/^503/),
    ]);
    expect(await storedAt(entity?._id as string)).not.toHaveProperty('status');
  });
});

test('leaves the former holder of an own id unchanged when the id passes to another object meanwhile', async () => {
  const [first, second] = (await createAll([newEntity('shared'), newEntity('other')])) as [Entity, Entity];
  const give = (_id: string, id: string) =>
    database.db.collection('objects').updateOne({ _id: new ObjectId(_id) }, { $set: { id } });
  let isGiven = false;
  // Between the reading of whose it is and the change.
  const racing: Database = {
    ...database,
    async batch(what, items, run) {
      if (what === 'update objects' && !isGiven) {
        isGiven = true;
        await give(first._id, 'moved');
        await give(second._id, 'shared');
      }
      return database.batch(what, items, run);
    },
  };
  await changeEntity(racing, OBJECTS, SCOPE, 'shared', { patch: { status: 'mine' }, nowMs: 1 });
  expect(await storedAt(first._id)).not.toHaveProperty('status');
  expect(await storedAt(second._id)).toMatchObject({ id: 'shared', status: 'mine' });
});

test('increases `_at` with every change, even if the clock stands still or goes back', async () => {
  const [entity] = await createAll([newEntity('a')]);
  const key = entity?._id as string;
  const ats = [];
  for (const nowMs of [2_000, 2_000, 1_500, 3_000]) ats.push((await change(key, { status: 'same' }, { nowMs }))._at);
  expect(ats).toEqual([2_000, 2_001, 2_002, 3_000]);
});

test('changes only the time when an entity is shared again with the same user', async () => {
  const [entity] = await createAll([newEntity('a')]);
  const anna = newId();
  const boris = newId();
  const share = (userId: string, shared: boolean, nowMs: number) =>
    shareEntity(database, OBJECTS, SCOPE, entity?._id as string, { userId, shared, nowMs, marks: { _m: nowMs } });
  await share(anna, true, 1);
  await share(boris, true, 2);
  expect(await entityOf(await share(anna, true, 3))).toMatchObject({ access: [anna, boris], _m: 2 });
  expect(await entityOf(await share(anna, false, 4))).toMatchObject({ access: [boris], _m: 2 });
});

describe('a change by a random caller', () => {
  const people = [newId(), newId(), newId()];
  const groups = [newId(), newId(), newId()];
  const some = (ids: string[]) => fc.subarray(ids);
  const entities = fc.record({ owner: fc.constantFrom(...people), branch: some(groups), access: some(people) });
  const scopes = fc.record({ userId: fc.constantFrom(...people), groupId: fc.constantFrom(...groups) });

  test('applies exactly if the caller sees the entity in lists and single reads', async () => {
    await fc.assert(
      fc.asyncProperty(entities, scopes, async (fields, scope) => {
        const entity = newEntity(newId(), fields);
        await createEntity(database, OBJECTS, entity);
        const before = await storedAt(entity._id);
        const isSeen =
          fields.branch.includes(scope.groupId) ||
          fields.owner === scope.userId ||
          fields.access.includes(scope.userId);
        const outcome = await outcomeOf(change(entity._id, { status: 'changed' }, { scope: scopeOf(scope) }));
        expect(outcome).toBe(isSeen ? `${entity.id}: changed` : '404');
        if (!isSeen) expect(await storedAt(entity._id)).toEqual(before);
      }),
      { numRuns: runsOf(60) },
    );
  });
});
