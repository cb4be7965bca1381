/** A server that refuses a raw read since it is no primary any more: what it says of itself must not confuse the driver. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Long, ObjectId } from 'mongodb';
import { scopeOf } from '../../src/core/access.js';
import { toApiError } from '../../src/core/errors.js';
import { builtInStore, type Store } from '../../src/core/stores.js';
import { getEntity } from '../../src/entities/read.js';
import { createEntity, newId } from '../../src/entities/write.js';
import { createClient, type Database, databaseOf } from '../../src/platform/mongo/driver/client.js';
import { useService } from '../support/fixture.js';
import { type Fate, type Line, startLine } from '../support/lossy-connection.js';

const service = useService();
const OBJECTS = builtInStore('objects');
const FIND = Buffer.from('find\0');
const PROCESS = new ObjectId();
let line: Line;
let database: Database;
let toRefuse = 0;

beforeAll(async () => {
  const decide = (asked: Buffer): Fate => {
    if (toRefuse === 0 || !asked.includes(FIND)) return 'passes';
    const counter = Long.fromNumber(toRefuse--);
    const topologyVersion = { processId: PROCESS, counter };
    return {
      ok: 0,
      code: 11_602,
      codeName: 'InterruptedDueToReplStateChange',
      errmsg: 'stepped down',
      topologyVersion,
    };
  };
  line = await startLine(service.mongodbUri, decide, createClient);
  database = databaseOf(line.client);
});

afterAll(() => line.stop());

test('answers reads with 503 while the database refuses, and normally afterwards', async () => {
  const group = newId();
  const scope = scopeOf({ userId: newId(), groupId: group });
  const _id = newId();
  const entity = { _id, id: 'read', name: 'read', owner: newId(), group, branch: [group], access: [], time: 1 };
  await createEntity(database, OBJECTS, entity);
  // Those of one store are one question.
  const read = (store: Store): Promise<string> =>
    getEntity(database, store, scope, _id).then(
      ({ id }) => String(id),
      (error) => String(toApiError(error).status),
    );
  for (let round = 0; round < 3; round++) {
    toRefuse = 3;
    const refused = ['objects', 'models', 'users'].map((name) => read(builtInStore(name)));
    expect(await Promise.all(refused)).toEqual(['503', '503', '503']);
    expect(await read(OBJECTS)).toBe('read');
  }
});
