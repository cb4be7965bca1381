/** The watcher on a real change stream: every change once and in order, whatever happens to its cursor. */
import { afterEach, expect, test } from '@jest/globals';
import { BSON, Decimal128, type Document, type MongoClient, ObjectId } from 'mongodb';
import type { Change } from '../../src/core/change.js';
import { unavailable } from '../../src/core/errors.js';
import { LIMITS } from '../../src/core/limits.js';
import { createHistory } from '../../src/platform/mongo/changes/history.js';
import { startWatcher, type Watcher } from '../../src/platform/mongo/changes/watcher.js';
import { createWatcherClient, type Database } from '../../src/platform/mongo/driver/client.js';
import { insertTogether } from '../../src/platform/mongo/driver/retryable-write.js';
import { connectDatabase } from '../../src/platform/mongo/schema/connect.js';
import { testUri } from '../support/fixture.js';
import { runsOf } from '../support/runs.js';
import { until } from '../support/until.js';

// Another stream is opened soon after a failure, and none because a busy machine was silent for a while.
Object.assign(LIMITS, { watcherPauseMaxMs: 50, watcherAnswerMs: 60_000 });
const endings: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

interface Watched {
  readonly database: Database;
  readonly watcher: Watcher;
  readonly changes: Change[];
  readonly logged: string[];
  readonly gaps: () => number;
  nowMs: number;
}

async function watch(failing: (change: Change) => boolean = () => false): Promise<Watched> {
  const uri = testUri();
  const database = await connectDatabase(uri);
  const client: MongoClient = createWatcherClient(uri);
  const changes: Change[] = [];
  const logged: string[] = [];
  let gaps = 0;
  const note = (_details: object, message: string) => void logged.push(message);
  const watched = { database, changes, logged, gaps: () => gaps, nowMs: 1_000_000 } as {
    -readonly [K in keyof Watched]: Watched[K];
  };
  watched.watcher = await startWatcher({
    client,
    onStart: () => undefined,
    onChange(change) {
      if (failing(change)) throw unavailable('cannot be delivered now');
      changes.push(change);
    },
    onGap: () => void gaps++,
    onSkipped: () => void logged.push('skipped'),
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

/** The cursors of this watcher on the server, idle or active; other tests use the same server. */
function cursorsOf({ database }: Watched): Promise<Document[]> {
  const ns = `${database.db.databaseName}.$cmd.aggregate`;
  const stages = [
    { $currentOp: { allUsers: true, idleCursors: true } },
    { $match: { 'cursor.cursorId': { $exists: true }, ns } },
  ];
  // The driver would send a small id back as a double.
  return database.client.db('admin').aggregate(stages, { promoteLongs: false }).toArray();
}

/** Kills the watcher's cursor on the server. Returns whether there was one. */
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
  }, 'a cursor of the watcher');
  const killSessions = found.map(({ lsid }) => ({ id: lsid.id }));
  await watched.database.client.db('admin').command({ killSessions });
}

test('reports each kind of change with both images, in order, and no change of other collections', async () => {
  const watched = await watch();
  const { db } = watched.database;
  const _id = new ObjectId();
  const owner = new ObjectId();
  const text = _id.toHexString();
  await db.collection('objects').insertOne({ _id, owner, n: 1 });
  await db.collection('attempts').insertOne({ n: 1 });
  await db.collection('custom.pumps').insertOne({ n: 1 });
  await db.collection('objects').updateOne({ _id }, { $set: { n: 1 } });
  await db.collection('objects').updateOne({ _id }, { $set: { n: 2 } });
  await db.collection('objects').replaceOne({ _id }, { owner, n: 3 });
  await db.collection('objects').deleteOne({ _id });
  await db.collection('packets').insertOne({ _id, speed: 1 });
  await until(() => watched.changes.some(({ store }) => store === 'packets'), 'the last change');
  const image = (n: number) => ({ _id: text, owner: owner.toHexString(), n });
  expect(watched.changes).toMatchObject([
    { store: 'objects', kind: 'created', id: text, before: null, after: image(1) },
    { store: 'objects', kind: 'changed', id: text, before: image(1), after: image(2) },
    { store: 'objects', kind: 'changed', id: text, before: image(2), after: image(3) },
    { store: 'objects', kind: 'removed', id: text, before: image(3), after: null },
    { store: 'packets', kind: 'created', id: text, before: null, after: { _id: text, speed: 1 } },
  ]);
  expectIncreasing(watched.changes);
  expect(watched.logged).toEqual([]);
});

test('leaves hidden fields out of images, and reports a session without its content', async () => {
  const watched = await watch();
  const { db } = watched.database;
  const _id = new ObjectId();
  await db.collection('users').insertOne({ _id, login: 'a', _password: 'canary-1' });
  await db.collection('users').updateOne({ _id }, { $set: { _password: 'canary-2' } });
  await db.collection<{ _id: string }>('sessions').insertOne({ _id: 'sid', session: 'canary-3' } as { _id: string });
  await db.collection<{ _id: string }>('sessions').deleteOne({ _id: 'sid' });
  await until(() => watched.changes.length === 4, 'four changes');
  expect(JSON.stringify(watched.changes)).not.toContain('canary');
  expect(watched.changes.map(({ store, kind, id }) => `${store} ${kind} ${id}`)).toEqual([
    `users created ${_id}`,
    `users changed ${_id}`,
    'sessions created sid',
    'sessions removed sid',
  ]);
});

test('loses and repeats no change when its cursor is killed several times while others write', async () => {
  const watched = await watch();
  const packets = watched.database.db.collection<{ _id: number }>('packets');
  const leastPackets = runsOf(3_000);
  const leastKills = 4;
  let written = 0;
  let kills = 0;
  let isOver = false;
  // After a kill the watcher waits a moment: a quick machine would have written everything before the fourth cursor.
  const write = async () => {
    for (; written < leastPackets || kills < leastKills; written += 10) {
      await packets.insertMany(Array.from({ length: 10 }, (_, at) => ({ _id: written + at })));
    }
  };
  const writing = write().finally(() => {
    isOver = true;
  });
  while (!isOver) if (await killCursor(watched)) kills++;
  await writing;
  await until(() => watched.changes.length >= written, 'every change');
  expect(watched.logged.length).toBeGreaterThan(0);
  expect(watched.changes.map(({ id }) => Number(id))).toEqual(Array.from({ length: written }, (_, at) => at));
  expectIncreasing(watched.changes);
  expect(watched.gaps()).toBe(0);
});

test('loses and repeats no change when its session is killed', async () => {
  const watched = await watch();
  const packets = watched.database.db.collection<{ _id: number }>('packets');
  for (let round = 0; round < 5; round++) {
    await packets.insertOne({ _id: 2 * round });
    await killSession(watched);
    await packets.insertOne({ _id: 2 * round + 1 });
  }
  await until(() => watched.changes.length >= 10, 'every change');
  expect(watched.changes.map(({ id }) => Number(id))).toEqual(Array.from({ length: 10 }, (_, at) => at));
  expect(watched.gaps()).toBe(0);
});

test('repeats a change that could not be delivered, before any later one', async () => {
  const failed = new Set<string>();
  const watched = await watch(({ id }) => Number(id) % 7 === 0 && !failed.has(id) && failed.add(id).has(id));
  const packets = watched.database.db.collection<{ _id: number }>('packets');
  await packets.insertMany(Array.from({ length: 30 }, (_, _id) => ({ _id })));
  await until(() => watched.changes.length >= 30, 'every change');
  expect(failed.size).toBe(5);
  expect(watched.changes.map(({ id }) => Number(id))).toEqual(Array.from({ length: 30 }, (_, at) => at));
});

test('stops at once while it waits for changes', async () => {
  const { watcherWaitMs, watcherAnswerMs, watcherAnswerMaxMs } = LIMITS;
  const hourMs = 3_600_000;
  Object.assign(LIMITS, { watcherWaitMs: hourMs, watcherAnswerMs: hourMs, watcherAnswerMaxMs: hourMs });
  try {
    const watched = await watch();
    await until(async () => (await cursorsOf(watched)).some(({ type }) => type === 'op'), 'a read that waits');
    // Does not wait for the read to end by itself.
    await watched.watcher.stop();
    expect(await cursorsOf(watched)).toEqual([]);
    expect(watched.logged).toEqual([]);
  } finally {
    Object.assign(LIMITS, { watcherWaitMs, watcherAnswerMs, watcherAnswerMaxMs });
  }
});

test('skips a change that can never be delivered, and delivers the others', async () => {
  const watched = await watch(({ id }) => {
    if (id === '2') throw new TypeError('a fault of ours');
    return false;
  });
  const packets = watched.database.db.collection<{ _id: number }>('packets');
  await packets.insertMany([1, 2, 3].map((_id) => ({ _id })));
  await until(() => watched.changes.length === 2, 'two changes');
  expect(watched.changes.map(({ id }) => id)).toEqual(['1', '3']);
  expect(watched.logged).toEqual(['skipped a change that could not be delivered', 'skipped']);
});

test('reports one gap after the database was dropped, and the changes after it', async () => {
  const watched = await watch();
  const packets = watched.database.db.collection<{ _id: number }>('packets');
  await packets.insertOne({ _id: 1 });
  await until(() => watched.changes.length === 1, 'the first change');
  await watched.database.db.dropDatabase();
  await until(() => watched.gaps() > 0, 'a gap');
  // The stream must be open when the gap is reported.
  await packets.insertOne({ _id: 2 });
  await until(() => watched.changes.length === 2, 'the change after the gap');
  expect(watched.changes.map(({ id }) => id)).toEqual(['1', '2']);
  expect(watched.gaps()).toBe(1);
});

test('reports a packet as it is stored, also with a value that JSON cannot represent', async () => {
  const watched = await watch();
  const first = new ObjectId();
  const second = new ObjectId();
  const _oid = new ObjectId();
  const packets = watched.database.db.collection('packets');
  await packets.insertOne({ _id: first, _oid, time: 1, speed: 5, price: Decimal128.fromString('1.5') });
  await packets.insertOne({ _id: second, _oid, time: 2, name: 'Größe "x"', place: { lat: 1.25 } });
  await until(() => watched.changes.length >= 2, 'both packets');
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

test('reports packets that are inserted one by one, together and as retries allow, and none that a transaction inserts', async () => {
  const watched = await watch();
  const { client, db } = watched.database;
  const packets = db.collection<{ _id: number }>('packets');
  const insertAs = (ids: readonly number[]) =>
    insertTogether(
      db,
      'packets',
      ids.map((_id) => ({ bson: BSON.serialize({ _id }) })),
    );
  await insertAs([1]);
  await insertAs([2, 3]);
  await packets.insertOne({ _id: 4 });
  await packets.insertMany([{ _id: 5 }, { _id: 6 }]);
  // Unpacking: buckets become rows again.
  await client.withSession((session) =>
    session.withTransaction(async () => {
      await packets.insertMany([{ _id: 7 }, { _id: 8 }], { session });
      await db.collection<{ _id: number }>('objects').insertOne({ _id: 9 }, { session });
    }),
  );
  await until(() => watched.changes.some(({ id }) => id === '9'), 'the object');
  await packets.insertOne({ _id: 10 });
  await until(() => watched.changes.some(({ id }) => id === '10'), 'the last packet');
  const named = watched.changes.map(({ store, id }) => `${store} ${id}`);
  const expected = [1, 2, 3, 4, 5, 6].map((id) => `packets ${id}`);
  expect(named).toEqual([...expected, 'objects 9', 'packets 10']);
  // A client that resumes within them, or where the stream had read on to, misses nothing and gets nothing twice.
  const at = (id: string) => (watched.changes.find((change) => change.id === id) as Change).position;
  expect(await idsAfter(watched, at('6'))).toEqual(['9', '10']);
  expect(await idsAfter(watched, at('9'))).toEqual(['10']);
});

/** The changes after a position, up to the packet 10. */
async function idsAfter({ database }: Watched, position: string): Promise<string[]> {
  const pages = await createHistory(database.client)(position);
  if (pages === null) throw new Error('the history is gone');
  const ids: string[] = [];
  for await (const { changes } of pages) {
    ids.push(...changes.map(({ id }) => id));
    if (ids.includes('10')) break;
  }
  return ids;
}

test('counts as live while the database answers, and not when its last answer is old', async () => {
  const watched = await watch();
  expect(watched.watcher.isLive()).toBe(true);
  watched.nowMs += 10_000;
  expect(watched.watcher.isLive()).toBe(false);
  await until(() => watched.watcher.isLive(), 'the watcher to be live');
});

test('skips and counts a change that is too large with its images, and reports the changes after it', async () => {
  const watched = await watch();
  const { db } = watched.database;
  const objects = db.collection<{ _id: number }>('objects');
  const packets = db.collection<{ _id: number }>('packets');
  // Before, after and difference together are more than the database's largest answer.
  await objects.insertOne({ _id: 1, big: 'a'.repeat(9_000_000) } as { _id: number });
  await packets.insertOne({ _id: 2 });
  await objects.updateOne({ _id: 1 }, { $set: { big: 'b'.repeat(9_000_000) } });
  await packets.insertOne({ _id: 3 });
  await until(() => watched.changes.length >= 3, 'three changes');
  expect(watched.changes.map(({ store, kind, id }) => `${store} ${kind} ${id}`)).toEqual([
    'objects created 1',
    'packets created 2',
    'packets created 3',
  ]);
  expect(watched.watcher.stats()).toMatchObject({ restarts: 0, gaps: 0, skipped: 1 });
  const message = 'skipped changes that are too large for the database to report';
  expect(watched.logged).toEqual(['skipped', message, 'skipped']);
  // A stream that is opened after the large change continues behind it.
  while (!(await killCursor(watched)));
  await packets.insertOne({ _id: 4 });
  await until(() => watched.changes.length >= 4, 'the change after a new cursor');
  expect(watched.changes.map(({ id }) => id)).toEqual(['1', '2', '3', '4']);
  expectIncreasing(watched.changes);
});

test('counts its restarts and gaps, and measures its lag', async () => {
  const watched = await watch();
  const packets = watched.database.db.collection<{ _id: number }>('packets');
  expect(watched.watcher.stats()).toEqual({ restarts: 0, gaps: 0, skipped: 0, lagMs: null, lastReplyAtMs: 1_000_000 });
  watched.nowMs = Date.now() + 60_000;
  await packets.insertOne({ _id: 1 });
  await until(() => watched.watcher.stats().lagMs !== null, 'a lag');
  const { lagMs, lastReplyAtMs } = watched.watcher.stats();
  expect({ lagMs: Math.round((lagMs ?? 0) / 20_000), lastReplyAtMs }).toEqual({
    lagMs: 3,
    lastReplyAtMs: watched.nowMs,
  });
  while (!(await killCursor(watched)));
  await until(() => watched.watcher.stats().restarts > 0, 'a restart');
  await watched.database.db.dropDatabase();
  await until(() => watched.watcher.stats().gaps > 0, 'a counted gap');
});

test('says up to when it has delivered all that was stored: before the last change of a full reply, and until an empty one was asked for', async () => {
  const { watcherPage } = LIMITS;
  Object.assign(LIMITS, { watcherPage: 1 });
  endings.push(async () => void Object.assign(LIMITS, { watcherPage }));
  const beginMs = Date.now();
  const laterMs = beginMs + 3_600_000;
  const delivered: number[] = [];
  const watched: Watched = await watch(() => {
    watched.nowMs = laterMs;
    delivered.push(watched.watcher.deliveredToMs());
    return false;
  });
  await until(() => watched.watcher.deliveredToMs() === 1_000_000, 'an empty reply');
  await watched.database.db.collection('packets').insertMany([{}, {}, {}, {}]);
  await until(() => watched.watcher.deliveredToMs() === laterMs, 'a later empty reply');
  // What the first two replies were asked for by the former clock.
  expect(delivered.slice(0, 2)).toEqual([1_000_000, 1_000_000]);
  const written = delivered.slice(2).map((ms) => ms + LIMITS.clockSkewMs);
  expect(written.map((ms) => ms >= beginMs && ms <= Date.now())).toEqual([true, true]);
});
