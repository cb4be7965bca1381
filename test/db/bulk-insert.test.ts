/** New entities of one moment: stored together, refused one by one, as each would be alone. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import type { Entity } from '../../src/core/entity.js';
import { toApiError } from '../../src/core/errors.js';
import { builtInStore } from '../../src/core/stores.js';
import { createEntity, newId } from '../../src/entities/write.js';
import { type Database, databaseOf } from '../../src/platform/mongo/driver/client.js';
import { useService } from '../support/fixture.js';
import { fc, runsOf } from '../support/runs.js';

const service = useService();
const OBJECTS = builtInStore('objects');
let database: Database;
let inserts: number[] = [];

beforeAll(async () => {
  const client = await new MongoClient(service.mongodbUri, { monitorCommands: true }).connect();
  client.on('commandStarted', ({ command }) => {
    if (command.insert === 'objects') inserts.push(command.documents.length);
  });
  database = databaseOf(client);
});

afterAll(() => database.client.close());

beforeEach(async () => {
  await database.db.collection('objects').deleteMany({});
  inserts = [];
});

const newEntity = (id: string): Entity => ({
  _id: newId(),
  id,
  name: id,
  owner: newId(),
  group: newId(),
  branch: [],
  access: [],
  time: 1,
});

const outcomeOf = async (made: Promise<Entity>): Promise<string> =>
  made.then(
    ({ _id }) => `stored ${_id}`,
    (error) => `${toApiError(error).status} ${toApiError(error).help}`,
  );

const createAll = (entities: readonly Entity[]): Promise<string[]> =>
  Promise.all(entities.map((entity) => outcomeOf(createEntity(database, OBJECTS, entity))));

test('inserts the documents of one turn with one command', async () => {
  const entities = Array.from({ length: 30 }, (_, nth) => newEntity(`object-${nth}`));
  expect(await createAll(entities)).toEqual(entities.map(({ _id }) => `stored ${_id}`));
  expect(inserts).toEqual([30]);
  expect(await database.db.collection('objects').countDocuments()).toBe(30);
});

describe('a refused document', () => {
  test('fails alone, with the same message as in a single insert', async () => {
    await createEntity(database, OBJECTS, newEntity('taken'));
    const alone = await outcomeOf(createEntity(database, OBJECTS, newEntity('taken')));
    const entities = ['a', 'taken', 'b'].map(newEntity);
    expect(await createAll(entities)).toEqual([`stored ${entities[0]?._id}`, alone, `stored ${entities[2]?._id}`]);
    expect(alone).toBe('409 id: already taken');
  });

  test('fails alone also for a duplicate `_id`', async () => {
    const first = newEntity('a');
    await createEntity(database, OBJECTS, first);
    const entities = [newEntity('b'), { ...newEntity('c'), _id: first._id }];
    expect(await createAll(entities)).toEqual([`stored ${entities[0]?._id}`, '409 _id: already taken']);
  });

  test('loses to exactly one of several with the same unique value', async () => {
    const ids = fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 12 });
    const property = fc.asyncProperty(ids, async (given) => {
      await database.db.collection('objects').deleteMany({});
      const outcomes = await createAll(given.map(newEntity));
      const stored = given.filter((_, at) => outcomes[at]?.startsWith('stored'));
      expect(stored.sort()).toEqual([...new Set(given)].sort());
      expect(new Set(outcomes.filter((outcome) => !outcome.startsWith('stored'))).size).toBeLessThanOrEqual(1);
      expect(await database.db.collection('objects').distinct('id')).toEqual([...new Set(given)].sort());
    });
    await fc.assert(property, { numRuns: runsOf(20) });
  });
});

test('answers 200 to one of many requests with the same own id, and 409 to the others', async () => {
  const names = ['x', 'x', 'y', 'x', 'z', 'y'];
  const answers = await Promise.all(names.map((id) => service.admin('POST', 'objects', { id, name: id })));
  const count = (status: number) => answers.filter((answer) => answer.status === status).length;
  expect([count(200), count(409)]).toEqual([3, 3]);
  for (const { status, body } of answers)
    if (status === 409) expect(body.helper).toEqual({ message: 'id: already taken' });
});
