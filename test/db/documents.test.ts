/** The border to MongoDB: an entity as a document and back, and faults of the driver as errors of ours. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Collection, type Document, MongoClient, ObjectId } from 'mongodb';
import { projectionOf, toDatabaseError, toDocument, toEntity } from '../../src/db/documents.js';
import { builtInStore } from '../../src/model/stores.js';
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

describe('an entity at the border', () => {
  const OBJECTS = builtInStore('objects');
  const ID = '65a00000000000000000000a';

  test('becomes a document with its references as ids, and the same entity again', async () => {
    const entity = {
      ...{ _id: ID, owner: ID, group: ID, branch: [ID], access: [], time: 1, model: ID, models: { id: ID } },
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
    ['users', null, { _password: 0 }],
    ['users', ['login', '_password', '_password.x'], { _id: 1, login: 1 }],
    ['labels', ['name', '_id', '_id.x'], { _id: 1, name: 1 }],
    ['labels', [], { _id: 1 }],
  ])('of %s with only %j is projected to %j', (store, only, projection) => {
    expect(projectionOf(builtInStore(store), only)).toEqual(projection);
  });
});

test.each(['EPIPE', 'ECONNRESET', 'ERR_STREAM_DESTROYED'])(
  'a connection that ends under the driver (%s) is the database being away, not a fault of ours',
  (code) => {
    const cause = Object.assign(new Error('This socket has been ended by the other party'), { code });
    expect(toDatabaseError(cause)).toMatchObject({ status: 503, headers: { 'Retry-After': '1' }, cause });
    const other = new TypeError('a fault of ours');
    expect(toDatabaseError(other)).toBe(other);
  },
);
