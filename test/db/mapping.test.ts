/** The border to MongoDB: an entity as a document and back, and faults of the driver as errors of ours. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Collection, type Document, MongoClient, ObjectId } from 'mongodb';
import { builtInStore } from '../../src/core/stores.js';
import { toDatabaseError } from '../../src/platform/mongo/driver/errors.js';
import { projectionOf, toDocument, toEntity } from '../../src/platform/mongo/schema/mapping.js';
import { testUri } from '../support/fixture.js';

let client: MongoClient;
let collection: Collection<Document>;

beforeAll(async () => {
  client = await new MongoClient(testUri()).connect();
  collection = client.db().collection('border');
});

afterAll(async () => {
  await client.db().dropDatabase();
  await client.close();
});

describe('an entity', () => {
  const OBJECTS = builtInStore('objects');
  const ID = '65a00000000000000000000a';

  test('converts to a document with references as ids, and back', async () => {
    const entity = {
      _id: ID,
      owner: ID,
      group: ID,
      branch: [ID],
      access: [],
      time: 1,
      model: ID,
      models: { id: ID },
      note: ID,
      list: [ID],
      config: { model: ID },
    };
    const document = toDocument(OBJECTS, entity);
    const id = new ObjectId(ID);
    expect(document).toEqual({ ...entity, _id: id, owner: id, group: id, branch: [id], model: id, models: { id } });
    await collection.insertOne(document);
    expect(toEntity(OBJECTS, (await collection.findOne({ _id: id })) as Document)).toEqual(entity);
  });

  test.each<[store: string, only: string[] | null, projection: object | undefined]>([
    ['objects', null, undefined],
    ['users', null, { _password: 0, _channels: 0, _confirmed: 0, _quiet: 0, _minSeverity: 0 }],
    ['users', ['login', '_password', '_password.x'], { _id: 1, login: 1 }],
    ['labels', ['name', '_id', '_id.x'], { _id: 1, name: 1 }],
    ['labels', [], { _id: 1 }],
  ])('projects %s with only %j to %j', (store, only, projection) => {
    expect(projectionOf(builtInStore(store), only)).toEqual(projection);
  });
});

test.each(['EPIPE', 'ECONNRESET', 'ERR_STREAM_DESTROYED'])(
  'treats a connection that ends below the driver (%s) as an unavailable database',
  (code) => {
    const cause = Object.assign(new Error('This socket has been ended by the other party'), { code });
    expect(toDatabaseError(cause)).toMatchObject({ status: 503, headers: { 'Retry-After': '1' }, cause });
    const other = new TypeError('a fault of ours');
    expect(toDatabaseError(other)).toBe(other);
  },
);
