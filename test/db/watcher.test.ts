/** The watcher alone, on a real change stream: every change once and in order, whatever happens to its cursor. */
import { afterEach, expect, test } from '@jest/globals';
import { Decimal128, type Document, type MongoClient, ObjectId } from 'mongodb';
import { startWatcher, type Watcher } from '../../src/db/changes/watcher.js';
import { createWatcherClient, type Database } from '../../src/db/driver/client.js';
import { connectDatabase } from '../../src/db/schema/connect.js';
import { unavailable } from '../../src/errors.js';
import type { Change } from '../../src/model/change.js';
import { testUri } from '../support/fixture.js';
import { until } from '../support/until.js';

const endings: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

interface Watched {
  readonly database: Database;
  readonly watcher: Watcher;
  readonly changes: Change[];
  readonly said: string[];
  readonly gaps: () => number;
  nowMs: number;
}

async function watch(failing: (change: Change) => boolean = () => false): Promise<Watched> {
  const uri = testUri();
  const database = await connectDatabase(uri);
  const client: MongoClient = createWatcherClient(uri);
  const changes: Change[] = [];
  const said: string[] = [];
  let gaps = 0;
  const note = (_details: object, message: string) => void said.push(message);
  const watched = { database, changes, said, gaps: () => gaps, nowMs: 1_000_000 } as {
    -readonly [K in keyof Watched]: Watched[K];
  };
  watched.watcher = await startWatcher({
    client,
    onStart: () => undefined,
    onChange(change) {
      if (failing(change)) throw unavailable('cannot be told now');
      changes.push(change);
    },
    onGap: () => void gaps++,
    log: { warn: note, error: note },
    now: () => watched.nowMs,
  });
  endings.push(
    () => database.client.close(),
    () => database.db.dropDatabase(),
    () => client.close(),
    () => watched.watcher.stop(),
  );
  return watched;
}

const bytesOf = (position: string): Buffer => Buffer.from(position, 'base64url');

function expectIncreasing(changes: readonly Change[]): void {
  for (const [at, { position }] of changes.entries()) {
    expect(position).toMatch(/^[\w-]+$/);
    const before = changes[at - 1];
    if (before !== undefined) expect(Buffer.compare(bytesOf(before.position), bytesOf(position))).toBe(-1);
  }
}

/** The cursors of the watcher on the server, idle or at work; nothing of others who use the same one. */
function cursorsOf({ database }: Watched): Promise<Document[]> {
  const ns = `${database.db.databaseName}.$cmd.aggregate`;
  const stages = [
    { $currentOp: { allUsers: true, idleCursors: true } },
    { $match: { 'cursor.cursorId': { $exists: true }, ns } },
  ];
  // As a number of JavaScript a small id would be told as a double.
  return database.client.db('admin').aggregate(stages, { promoteLongs: false }).toArray();
}

/** Ends the watcher's cursor on the server. Whether there was one. */
async function killCursor(watched: Watched): Promise<boolean> {
  const found = await cursorsOf(watched);
  for (const { cursor } of found) {
    await watched.database.db.command({ killCursors: '$cmd.aggregate', cursors: [cursor.cursorId] });
  }
  return found.length > 0;
}

async function killSession(watched: Watched): Promise<void> {
  let found: Document[] = [];
  // After a kill it opens another one soon.
  await until(async () => {
    found = await cursorsOf(watched);
    return found.length > 0;
  });
  const killSessions = found.map(({ lsid }) => ({ id: lsid.id }));
  await watched.database.client.db('admin').command({ killSessions });
}

test('each kind of change, with both images, in order; nothing of what is not watched', async () => {
  const watched = await watch();
  const { db } = watched.database;
  const [_id, owner] = [new ObjectId(), new ObjectId()];
  const text = _id.toHexString();
  await db.collection('objects').insertOne({ _id, owner, n: 1 });
  await db.collection('attempts').insertOne({ n: 1 });
  await db.collection('custom.pumps').insertOne({ n: 1 });
  await db.collection('objects').updateOne({ _id }, { $set: { n: 1 } });
  await db.collection('objects').updateOne({ _id }, { $set: { n: 2 } });
  await db.collection('objects').replaceOne({ _id }, { owner, n: 3 });
  await db.collection('objects').deleteOne({ _id });
  await db.collection('packets').insertOne({ _id, speed: 1 });
  await until(() => watched.changes.some(({ store }) => store === 'packets'));
  const image = (n: number) => ({ _id: text, owner: owner.toHexString(), n });
  expect(watched.changes).toMatchObject([
    { store: 'objects', kind: 'created', id: text, before: null, after: image(1) },
    { store: 'objects', kind: 'changed', id: text, before: image(1), after: image(2) },
    { store: 'objects', kind: 'changed', id: text, before: image(2), after: image(3) },
    { store: 'objects', kind: 'removed', id: text, before: image(3), after: null },
    { store: 'packets', kind: 'created', id: text, before: null, after: { _id: text, speed: 1 } },
  ]);
  expectIncreasing(watched.changes);
  expect(watched.said).toEqual([]);
});

test('what is hidden in a store is in no image, and a session has none', async () => {
  const watched = await watch();
  const { db } = watched.database;
  const _id = new ObjectId();
  await db.collection('users').insertOne({ _id, login: 'a', _password: 'canary-1' });
  await db.collection('users').updateOne({ _id }, { $set: { _password: 'canary-2' } });
  await db.collection<{ _id: string }>('sessions').insertOne({ _id: 'sid', session: 'canary-3' } as { _id: string });
  await db.collection<{ _id: string }>('sessions').deleteOne({ _id: 'sid' });
  await until(() => watched.changes.length === 4);
  expect(JSON.stringify(watched.changes)).not.toContain('canary');
  expect(watched.changes.map(({ store, kind, id }) => `${store} ${kind} ${id}`)).toEqual([
    `users created ${_id}`,
    `users changed ${_id}`,
    'sessions created sid',
    'sessions removed sid',
  ]);
});

test('its cursor killed again and again while others write: nothing lost, nothing twice, in order', async () => {
  const watched = await watch();
  const packets = watched.database.db.collection<{ _id: number }>('packets');
  const [least, leastKills] = [3_000, 4];
  let [written, kills, isOver] = [0, 0, false];
  // After a kill the watcher waits a moment: a quick machine has written so much before there was a cursor often enough.
  const write = async () => {
    for (; written < least || kills < leastKills; written += 10) {
      await packets.insertMany(Array.from({ length: 10 }, (_, at) => ({ _id: written + at })));
    }
  };
  const writing = write().finally(() => {
    isOver = true;
  });
  while (!isOver) if (await killCursor(watched)) kills++;
  await writing;
  await until(() => watched.changes.length >= written, 'every change', 30_000);
  expect(kills).toBeGreaterThan(3);
  expect(watched.said.length).toBeGreaterThan(0);
  expect(watched.changes.map(({ id }) => Number(id))).toEqual(Array.from({ length: written }, (_, at) => at));
  expectIncreasing(watched.changes);
  expect(watched.gaps()).toBe(0);
});

test('its session killed: the same', async () => {
  const watched = await watch();
  const packets = watched.database.db.collection<{ _id: number }>('packets');
  for (let round = 0; round < 5; round++) {
    await packets.insertOne({ _id: 2 * round });
    await killSession(watched);
    await packets.insertOne({ _id: 2 * round + 1 });
  }
  await until(() => watched.changes.length >= 10);
  expect(watched.changes.map(({ id }) => Number(id))).toEqual(Array.from({ length: 10 }, (_, at) => at));
  expect(watched.gaps()).toBe(0);
});

test('a change that could not be told is told again, before any that came after it', async () => {
  const failed = new Set<string>();
  const watched = await watch(({ id }) => Number(id) % 7 === 0 && !failed.has(id) && failed.add(id).has(id));
  const packets = watched.database.db.collection<{ _id: number }>('packets');
  await packets.insertMany(Array.from({ length: 30 }, (_, _id) => ({ _id })));
  await until(() => watched.changes.length >= 30, 'every change', 30_000);
  expect(failed.size).toBe(5);
  expect(watched.changes.map(({ id }) => Number(id))).toEqual(Array.from({ length: 30 }, (_, at) => at));
});

test('a change that never can be told is left out, and does not keep back the others', async () => {
  const watched = await watch(({ id }) => {
    if (id === '2') throw new TypeError('a fault of ours');
    return false;
  });
  const packets = watched.database.db.collection<{ _id: number }>('packets');
  await packets.insertMany([1, 2, 3].map((_id) => ({ _id })));
  await until(() => watched.changes.length === 2);
  expect(watched.changes.map(({ id }) => id)).toEqual(['1', '3']);
  expect(watched.said).toEqual(['skipped a change that could not be delivered']);
});

test('the database dropped: one gap is reported when the watcher hears again, and what follows is told', async () => {
  const watched = await watch();
  const packets = watched.database.db.collection<{ _id: number }>('packets');
  await packets.insertOne({ _id: 1 });
  await until(() => watched.changes.length === 1);
  await watched.database.db.dropDatabase();
  await until(() => watched.gaps() > 0);
  // Written right after the gap was reported: the stream must be open by then.
  await packets.insertOne({ _id: 2 });
  await until(() => watched.changes.length === 2);
  expect(watched.changes.map(({ id }) => id)).toEqual(['1', '2']);
  expect(watched.gaps()).toBe(1);
});

test('a packet is told as it is stored, also where others have put in what has no JSON form', async () => {
  const watched = await watch();
  const [first, second, _oid] = [new ObjectId(), new ObjectId(), new ObjectId()];
  const packets = watched.database.db.collection('packets');
  await packets.insertOne({ _id: first, _oid, time: 1, speed: 5, price: Decimal128.fromString('1.5') });
  await packets.insertOne({ _id: second, _oid, time: 2, name: 'Größe "x"', place: { lat: 1.25 } });
  await until(() => watched.changes.length >= 2);
  const plain = { _oid: String(_oid), time: 2, name: 'Größe "x"', place: { lat: 1.25 } };
  expect(watched.changes.map(({ id, objectId }) => [id, objectId])).toEqual([
    [String(first), String(_oid)],
    [String(second), String(_oid)],
  ]);
  expect(watched.changes.map(({ after }) => after)).toEqual([
    expect.objectContaining({ _id: String(first), time: 1, speed: 5, price: expect.anything() }),
    { _id: String(second), ...plain },
  ]);
  for (const { json, after } of watched.changes) expect(JSON.parse(String(json))).toEqual(after);
  expect(watched.watcher.stats()).toMatchObject({ skipped: 0 });
});

test('it is live while the database answers, and not in a silence', async () => {
  const watched = await watch();
  expect(watched.watcher.isLive()).toBe(true);
  watched.nowMs += 10_000;
  expect(watched.watcher.isLive()).toBe(false);
  await until(() => watched.watcher.isLive());
});

test('a change too large to be told with its images is left out and counted, and what comes after it is told', async () => {
  const watched = await watch();
  const { db } = watched.database;
  const objects = db.collection<{ _id: number }>('objects');
  const packets = db.collection<{ _id: number }>('packets');
  // Before, after and difference together are more than the database's largest answer.
  await objects.insertOne({ _id: 1, big: 'a'.repeat(9_000_000) } as { _id: number });
  await packets.insertOne({ _id: 2 });
  await objects.updateOne({ _id: 1 }, { $set: { big: 'b'.repeat(9_000_000) } });
  await packets.insertOne({ _id: 3 });
  await until(() => watched.changes.length >= 3);
  expect(watched.changes.map(({ store, kind, id }) => `${store} ${kind} ${id}`)).toEqual([
    'objects created 1',
    'packets created 2',
    'packets created 3',
  ]);
  expect(watched.watcher.stats()).toMatchObject({ restarts: 0, gaps: 0, skipped: 1 });
  expect(watched.said).toEqual(['skipped changes that are too large for the database to report']);
  // A stream that is opened after the pieces goes on there.
  while (!(await killCursor(watched)));
  await packets.insertOne({ _id: 4 });
  await until(() => watched.changes.length >= 4);
  expect(watched.changes.map(({ id }) => id)).toEqual(['1', '2', '3', '4']);
  expectIncreasing(watched.changes);
});

test('what happened to it is counted', async () => {
  const watched = await watch();
  const packets = watched.database.db.collection<{ _id: number }>('packets');
  expect(watched.watcher.stats()).toEqual({ restarts: 0, gaps: 0, skipped: 0, lagMs: null, lastReplyAtMs: 1_000_000 });
  watched.nowMs = Date.now() + 60_000;
  await packets.insertOne({ _id: 1 });
  await until(() => watched.watcher.stats().lagMs !== null);
  const { lagMs, lastReplyAtMs } = watched.watcher.stats();
  expect({ lagMs: Math.round((lagMs ?? 0) / 20_000), lastReplyAtMs }).toEqual({
    lagMs: 3,
    lastReplyAtMs: watched.nowMs,
  });
  while (!(await killCursor(watched)));
  await until(() => watched.watcher.stats().restarts > 0);
  await watched.database.db.dropDatabase();
  await until(() => watched.watcher.stats().gaps > 0);
});
