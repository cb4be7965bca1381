/** What goes to the database together: one that the database does not take, for whatever reason, fails alone. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { BSON, type Document, ObjectId } from 'mongodb';
import { createAudit } from '../../src/accounts/audit.js';
import { scopeOf } from '../../src/core/access.js';
import type { Entity } from '../../src/core/entity.js';
import { toApiError } from '../../src/core/errors.js';
import { builtInStore } from '../../src/core/stores.js';
import { createDigest } from '../../src/devices/dedup-id.js';
import { createPresence } from '../../src/devices/presence/presence.js';
import { readChanged } from '../../src/entities/read.js';
import { changeEntity, createEntity, newId } from '../../src/entities/write.js';
import { createIngest } from '../../src/packets/ingest.js';
import { findState } from '../../src/packets/latest.js';
import { createStampClock } from '../../src/packets/packet.js';
import { type Database, databaseOf } from '../../src/platform/mongo/driver/client.js';
import { findStored } from '../../src/platform/mongo/schema/lookup.js';
import { useService } from '../support/fixture.js';
import { type Fate, type Line, startLine } from '../support/lossy-connection.js';
import { until } from '../support/until.js';

const service = useService();
const OBJECTS = builtInStore('objects');
const LABELS = builtInStore('labels');
const GROUP = newId();
const SCOPE = scopeOf({ userId: newId(), groupId: GROUP });
const REFUSED: Document = { ok: 0, code: 2, codeName: 'BadValue', errmsg: 'it has a bad value' };
const AWAY: Document = { ok: 0, code: 11_600, codeName: 'InterruptedAtShutdown', errmsg: 'it shuts down' };

let line: Line;
let database: Database;
/** What the database takes no command with, and what it says of it; how often it did. */
let poison: Buffer | null = null;
let answer: Document = REFUSED;
let refusals = 0;

beforeAll(async () => {
  const decide = (asked: Buffer): Fate => {
    if (poison === null || !asked.includes(poison)) return 'passes';
    refusals++;
    return answer;
  };
  line = await startLine(service.mongodbUri, decide);
  database = databaseOf(line.client);
});

afterAll(() => line.stop());

beforeEach(() => {
  [poison, answer, refusals] = [null, REFUSED, 0];
});

const newEntity = (id: string): Entity => ({
  _id: newId(),
  id,
  name: id,
  owner: newId(),
  group: GROUP,
  branch: [GROUP],
  access: [],
  time: 1,
});

const outcomeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'done',
    (error) => toApiError(error).status,
  );

const NTH = Array.from({ length: 9 }, (_, nth) => nth);
/** The fifth of nine is the one that is not taken. */
const AT = 4;
const expected = (other: unknown): unknown[] => NTH.map((nth) => (nth === AT ? other : 'done'));
const storedIn = (collection: string, filter: Document): Promise<number> =>
  service.client.db().collection(collection).countDocuments(filter);

describe('one failing item among several of one command', () => {
  test('fails alone among new entities', async () => {
    const entities = NTH.map((nth) => newEntity(nth === AT ? 'new-poison' : `new-${nth}`));
    poison = Buffer.from('new-poison');
    expect(await Promise.all(entities.map((one) => outcomeOf(createEntity(database, OBJECTS, one))))).toEqual(
      expected(500),
    );
    expect(await storedIn('objects', { id: /^new-/ })).toBe(8);
  });

  test('fails alone among changes of entities', async () => {
    const entities = NTH.map((nth) => newEntity(`changed-${nth}`));
    await Promise.all(entities.map((one) => createEntity(database, OBJECTS, one)));
    poison = Buffer.from('poisoned status');
    const change = ({ _id }: Entity, nth: number): Promise<unknown> => {
      const patch = { status: nth === AT ? 'poisoned status' : 'fine' };
      return outcomeOf(changeEntity(database, OBJECTS, SCOPE, _id, { patch, nowMs: 1 }));
    };
    expect(await Promise.all(entities.map(change))).toEqual(expected(500));
    expect(await storedIn('objects', { id: /^changed-/, status: 'fine' })).toBe(8);
  });

  test('fails alone among packets', async () => {
    const ingest = createIngest(database, createStampClock(Date.now));
    poison = Buffer.from('poisoned packet');
    const send = (nth: number): Promise<unknown> => {
      const source = { objectId: newId(), ownId: `sender-${nth}`, groupId: GROUP };
      const parameters = { text: nth === AT ? 'poisoned packet' : 'fine' };
      return outcomeOf(ingest(source, [{ id: null, timeMs: null, online: true, parameters }]));
    };
    expect(await Promise.all(NTH.map(send))).toEqual(expected(500));
    expect(await storedIn('packets', { id: /^sender-/ })).toBe(8);
  });

  test('fails alone among reads by key', async () => {
    const entities = NTH.map((nth) => newEntity(`read-${nth}`));
    await Promise.all(entities.map((one) => createEntity(database, OBJECTS, one)));
    poison = Buffer.from('read-4\0');
    const byOwnId = entities.map(async ({ id }) => {
      const found = await findStored(database, OBJECTS, 'id', String(id));
      expect(BSON.deserialize(found as Uint8Array).id).toBe(id);
    });
    expect(await Promise.all(byOwnId.map(outcomeOf))).toEqual(expected(500));
    poison = new ObjectId(entities[AT]?._id).id as Buffer;
    const whole = entities.map(({ _id }) => readChanged(database, OBJECTS, _id));
    const states = entities.map(({ _id }) => findState(database, _id));
    const outcomes = await Promise.all([...whole, ...states].map(outcomeOf));
    expect(outcomes).toEqual([...expected(500), ...expected(500)]);
  });

  test('fails alone among security events', async () => {
    const said: string[] = [];
    const log = { info: () => undefined, error: (_: object, message: string) => void said.push(message) };
    const audit = createAudit({ database, log, now: Date.now });
    const event = { userId: null, login: null, address: '::1', requestId: '', method: 'POST', entityId: null };
    poison = Buffer.from('/poison');
    for (const nth of NTH) {
      audit.record({ ...event, action: 'together', path: nth === AT ? '/poison' : `/${nth}`, fields: null });
    }
    await audit.stop();
    expect(await storedIn('audit', { action: 'together' })).toBe(8);
    expect(said).toEqual(['failed to store security events; they are in the log']);
  });

  test('fails alone among disconnections of devices', async () => {
    const ingest = createIngest(database, createStampClock(Date.now));
    const said: string[] = [];
    const log = { info: () => undefined, warn: (_: object, message: string) => void said.push(message) };
    const presence = createPresence({ database, ingest, digest: createDigest(Buffer.alloc(32)), log, now: Date.now });
    const entities = NTH.map((nth) => newEntity(nth === AT ? 'device-poison' : `device-${nth}`));
    await Promise.all(entities.map((one) => createEntity(database, OBJECTS, one)));
    for (const { _id, id } of entities) {
      const source = { objectId: _id, ownId: String(id), groupId: GROUP };
      await presence.arrive(source, `connection ${_id}`);
    }
    poison = Buffer.from('device-poison');
    for (const { _id } of entities) presence.leave(_id, `connection ${_id}`);
    await until(
      async () => (await storedIn('packets', { id: /^device-/, online: false })) === 8,
      'eight packets of ends',
    );
    await until(async () => (await storedIn('presence', { instance: presence.instance })) === 0, 'all forgotten');
    expect(new Set(said)).toEqual(new Set(['failed to mark disconnected devices offline; skipping them']));
    await presence.stop();
  });
});

test('finds the failing item in few steps among many', async () => {
  const entities = Array.from({ length: 64 }, (_, nth) => newEntity(nth === 40 ? 'many-poison' : `many-${nth}`));
  poison = Buffer.from('many-poison');
  const outcomes = await Promise.all(entities.map((one) => outcomeOf(createEntity(database, LABELS, one))));
  expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(63);
  // Halved six times, from 64 on; and once more by itself.
  expect(refusals).toBe(8);
});

test('answers without the reason of the failure', async () => {
  poison = Buffer.from('silent-poison');
  const refused = await createEntity(database, LABELS, newEntity('silent-poison')).catch(toApiError);
  expect(refused).toMatchObject({ status: 500, help: undefined });
});

test('retries nothing one by one while the database is unavailable', async () => {
  answer = AWAY;
  poison = Buffer.from('away-0\0');
  const keys = NTH.map((nth) => `away-${nth}`);
  const outcomes = keys.map((key) => outcomeOf(findStored(database, OBJECTS, 'id', key)));
  expect(await Promise.all(outcomes)).toEqual(NTH.map(() => 503));
  expect(refusals).toBe(1);
});
