/** The states of a command in the database: in order, each once, also with concurrent writers. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import {
  claimCommand,
  confirmDelivery,
  countSentByRules,
  countWaiting,
  expireCommands,
  finishCommand,
  isQueueFull,
  listCommands,
  newCommandId,
  releaseCommands,
  type StoredCommand,
} from '../../src/commands/command-store.js';
import { scopeOf } from '../../src/core/access.js';
import type { Page } from '../../src/core/list.js';
import { type Database, databaseOf } from '../../src/platform/mongo/driver/client.js';
import { useService } from '../support/fixture.js';

const NOW = Date.now();
const service = useService({ now: () => NOW });
const ROUNDS = 50;
const PAGE: Page = {
  kind: 'page',
  offset: 0,
  limit: 10_000,
  after: null,
  sort: null,
  fromMs: null,
  toMs: null,
  filters: [],
  search: null,
  only: null,
};
let database: Database;
let objectId: string;

beforeEach(() => {
  database = databaseOf(service.client);
  objectId = new ObjectId().toHexString();
  return collection().deleteMany({});
});

const collection = () => database.db.collection('commands');
/** Commands as a client's request leaves them, in the order that they were sent. */
async function queue(count: number, more: object = {}): Promise<string[]> {
  const ids = Array.from({ length: count }, () => new ObjectId(newCommandId(NOW)));
  const common = {
    object: new ObjectId(objectId),
    command: 'go',
    params: {},
    status: 'queued',
    branch: [],
    access: [],
  };
  const documents = ids.map((_id) => ({ _id, ...common, times: { queued: NOW }, expires: NOW + 1_000, ...more }));
  await collection().insertMany(documents, { writeConcern: { w: 'majority' } });
  return ids.map(String);
}
const claim = (holder = 'h', nowMs = NOW + 1) => claimCommand(database, objectId, holder, nowMs);
const confirm = (id: string, holder: string | null = 'h') => confirmDelivery(database, id, holder, NOW + 2);
const finish = (commandId: string, status: 'done' | 'failed' = 'done', result?: string) =>
  finishCommand(database, { objectId, commandId }, { status, result }, NOW + 3);
const stored = async (id: string | undefined) => collection().findOne({ _id: new ObjectId(id) });
const one = async (): Promise<string> => (await queue(1))[0] as string;
const wins = (settled: PromiseSettledResult<unknown>[]) =>
  settled.filter(({ status }) => status === 'fulfilled').length;

describe('the order of commands', () => {
  test('follows their ids, by millisecond and then by creation', () => {
    const times = [NOW, NOW, NOW + 1, NOW + 999, NOW + 1_000, NOW + 60_000];
    const ids = times.map(newCommandId);
    expect([...ids].sort()).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
    for (const [at, id] of ids.entries()) {
      expect(id).toMatch(/^[0-9a-f]{24}$/);
      expect(new ObjectId(id).getTimestamp().getTime()).toBe(Math.floor((times[at] as number) / 1_000) * 1_000);
    }
  });

  test('claims the oldest command first, and each once', async () => {
    const ids = await queue(3);
    const claimed: (StoredCommand | null)[] = [];
    for (let n = 0; n < 4; n++) claimed.push(await claim());
    expect(claimed.map((command) => command?._id)).toEqual([...ids, undefined]);
    expect(claimed[0]).toMatchObject({ status: 'sent', times: { queued: NOW, sent: NOW + 1 }, object: objectId });
    expect(claimed[0]).not.toHaveProperty('_holder');
  });

  test('claims only commands of the object that have not expired', async () => {
    await queue(1, { object: new ObjectId() });
    await queue(1, { expires: NOW + 1 });
    const [open] = await queue(1, { expires: NOW + 2 });
    expect((await claim())?._id).toBe(open);
    expect(await claim()).toBeNull();
  });
});

describe('a lost connection', () => {
  test('leaves unconfirmed commands to the next connection, in order, and keeps confirmed ones', async () => {
    const ids = await queue(3);
    for (let n = 0; n < 3; n++) await claim('first');
    await confirm(ids[0] as string, 'first');
    expect(await releaseCommands(database, ['first'])).toBe(2);
    expect(await releaseCommands(database, ['first'])).toBe(0);
    expect(await stored(ids[1])).toMatchObject({ status: 'queued', times: { queued: NOW, sent: NOW + 1 } });
    expect([(await claim('next'))?._id, (await claim('next'))?._id, await claim('next')]).toEqual([
      ids[1],
      ids[2],
      null,
    ]);
    expect(await releaseCommands(database, ['first'])).toBe(0);
    expect(await stored(ids[0])).toMatchObject({ status: 'delivered' });
  });

  test('loses its command to the next connection, which makes its late confirmation ineffective', async () => {
    const id = await one();
    await claim('dead');
    expect((await claim('next'))?._id).toBe(id);
    expect(await confirm(id, 'dead')).toBeNull();
    expect(await releaseCommands(database, ['dead'])).toBe(0);
    expect(await confirm(id, 'next')).toMatchObject({ status: 'delivered', times: { delivered: NOW + 2 } });
    expect(await claim('other')).toBeNull();
  });
});

describe('the end of a command', () => {
  test.each(['queued', 'sent', 'delivered'])('follows %s, with the time of every status', async (from) => {
    const id = await one();
    if (from !== 'queued') await claim();
    if (from === 'delivered') await confirm(id);
    const ended = await finish(id, 'failed', 'jammed');
    const sent = from === 'queued' ? NOW + 3 : NOW + 1;
    const delivered = from === 'delivered' ? NOW + 2 : NOW + 3;
    expect(ended).toMatchObject({ _id: id, status: 'failed', result: 'jammed' });
    expect(ended.times).toEqual({ queued: NOW, sent, delivered, failed: NOW + 3 });
    expect(await stored(id)).not.toHaveProperty('_holder');
    expect([await claim('x'), await confirm(id, null), await releaseCommands(database, ['h'])]).toEqual([
      null,
      null,
      0,
    ]);
  });

  test('accepts the same result again, and refuses another result, another object and an unknown command', async () => {
    const id = await one();
    const ended = await finish(id, 'done', 'x');
    expect(
      await finishCommand(database, { objectId, commandId: id }, { status: 'done', result: 'x' }, NOW + 9),
    ).toEqual(ended);
    await expect(finish(id, 'done', 'y')).rejects.toMatchObject({ status: 409 });
    await expect(finish(id, 'failed', 'x')).rejects.toMatchObject({ status: 409 });
    await expect(finish(new ObjectId().toHexString())).rejects.toMatchObject({ status: 404 });
    await expect(finish('x')).rejects.toMatchObject({ status: 404 });
    objectId = new ObjectId().toHexString();
    await expect(finish(id, 'done', 'x')).rejects.toMatchObject({ status: 404 });
  });

  test('stores a result literally, even if it looks like a database expression', async () => {
    const id = await one();
    expect((await finish(id, 'done', '$command')).result).toBe('$command');
  });

  test('expires commands in any open status, once', async () => {
    const [queued, sent, delivered, done] = (await queue(4)) as [string, string, string, string];
    for (const id of [sent, delivered])
      await collection().updateOne({ _id: new ObjectId(id) }, { $set: { object: 1 } });
    const later = await queue(1, { expires: NOW + 1_001 });
    await collection().updateOne({ _id: new ObjectId(sent) }, { $set: { status: 'sent', _holder: 'h' } });
    await collection().updateOne({ _id: new ObjectId(delivered) }, { $set: { status: 'delivered' } });
    await finish(done);
    expect(await expireCommands(database, NOW + 999)).toBe(0);
    const counts = await Promise.all([1, 2, 3].map(() => expireCommands(database, NOW + 1_000)));
    expect(counts.reduce((a, b) => a + b)).toBe(3);
    for (const id of [queued, sent, delivered]) {
      expect(await stored(id)).toMatchObject({ status: 'expired', times: { expired: NOW + 1_000 } });
      expect(await stored(id)).not.toHaveProperty('_holder');
    }
    expect([(await stored(done))?.status, (await stored(later[0]))?.status]).toEqual(['done', 'queued']);
    await expect(finish(queued)).rejects.toMatchObject({ status: 409 });
  });

  test('expires more commands than fit into one write', async () => {
    await queue(2_500);
    expect(await expireCommands(database, NOW + 1_000)).toBe(2_500);
  });
});

describe(`concurrent steps, ${ROUNDS} times`, () => {
  const rounds = Array.from({ length: ROUNDS });

  test('gives the command to one of two claims of a connection', async () => {
    for (const _ of rounds) {
      const id = await one();
      const claimed = await Promise.all([claim(), claim()]);
      expect(claimed.filter((command) => command?._id === id)).toHaveLength(1);
    }
  });

  test('lets only one of two connections confirm', async () => {
    for (const _ of rounds) {
      const id = await one();
      await Promise.all([claim('a'), claim('b')]);
      const confirmed = await Promise.all([confirm(id, 'a'), confirm(id, 'b')]);
      expect(confirmed.filter((command) => command !== null)).toHaveLength(1);
    }
  });

  test('stores one of two results, and refuses the other', async () => {
    for (const _ of rounds) {
      const id = await one();
      const settled = await Promise.allSettled([finish(id, 'done', 'a'), finish(id, 'failed', 'b')]);
      expect(wins(settled)).toBe(1);
      const status = settled[0]?.status === 'fulfilled' ? 'done' : 'failed';
      const document = await stored(id);
      expect(document).toMatchObject({ status, result: status === 'done' ? 'a' : 'b' });
      expect(Object.keys(document?.times)).toEqual(['queued', 'sent', 'delivered', status]);
    }
  });

  test('stores either a result or the expiry', async () => {
    for (const _ of rounds) {
      const id = await one();
      const [finished, expired] = await Promise.allSettled([finish(id), expireCommands(database, NOW + 1_000)]);
      const status = finished.status === 'fulfilled' ? 'done' : 'expired';
      expect(expired).toEqual({ status: 'fulfilled', value: status === 'expired' ? 1 : 0 });
      const document = await stored(id);
      expect(document?.status).toBe(status);
      expect(document?.times).toHaveProperty(status);
      expect(document?.times).not.toHaveProperty(status === 'done' ? 'expired' : 'done');
    }
  });
});

test('counts what waits for each of several objects, and what each rule has sent to it since an instant', async () => {
  const [rule, otherRule] = [new ObjectId(), new ObjectId()].map(String) as [string, string];
  await queue(2, { _rule: rule, time: NOW });
  await queue(3, { _rule: rule, time: NOW - 1, status: 'done' });
  await queue(4, { time: NOW });
  const first = objectId;
  objectId = new ObjectId().toHexString();
  await queue(1, { _rule: rule, time: NOW });
  await queue(1, { _rule: otherRule, time: NOW + 1, status: 'sent' });
  const objectIds = [first, objectId, new ObjectId().toHexString()];
  expect(await countWaiting(database, objectIds)).toEqual(
    new Map([
      [first, 6],
      [objectId, 1],
    ]),
  );
  const sent = await countSentByRules(database, { objectIds, ruleIds: [rule, otherRule] }, NOW);
  expect(new Set(sent)).toEqual(
    new Set([
      { ruleId: rule, objectId: first, count: 2 },
      { ruleId: rule, objectId, count: 1 },
      { ruleId: otherRule, objectId, count: 1 },
    ]),
  );
  const early = await countSentByRules(database, { objectIds: [first], ruleIds: [rule] }, NOW - 1);
  expect(early).toEqual([{ ruleId: rule, objectId: first, count: 5 }]);
});

test('uses an index in every step', async () => {
  const group = new ObjectId();
  await queue(2_000, { status: 'done', branch: [group], time: NOW - 1 });
  await queue(3, { branch: [group] });
  await database.db.command({ profile: 2 });
  const scope = scopeOf({ userId: String(new ObjectId()), groupId: String(group) });
  const waiting = { objectId, statuses: ['queued'] as const, nowMs: NOW };
  expect((await listCommands(database, scope, waiting, PAGE)).count).toBe(3);
  expect((await listCommands(database, scope, { ...waiting, statuses: ['failed'] }, PAGE)).count).toBe(0);
  const { _id } = (await claim()) as StoredCommand;
  await confirm(_id);
  await finish(_id);
  await claim();
  expect(await releaseCommands(database, ['h'])).toBe(1);
  expect(await claim('h', NOW + 5_000)).toBeNull();
  expect(await isQueueFull(database, objectId)).toBe(false);
  expect(await countWaiting(database, [objectId])).toEqual(new Map([[objectId, 2]]));
  expect(await countSentByRules(database, { objectIds: [objectId], ruleIds: ['r'] }, NOW)).toEqual([]);
  expect(await expireCommands(database, NOW + 1_000)).toBe(2);
  await database.db.command({ profile: 0 });
  const steps = await database.db
    .collection('system.profile')
    .find({ ns: collection().namespace, op: { $ne: 'getmore' } })
    .toArray();
  expect(steps.length).toBeGreaterThanOrEqual(14);
  for (const { keysExamined = 0, docsExamined = 0, command } of steps) {
    expect({ command, few: keysExamined <= 10 && docsExamined <= 10 }).toEqual({ command, few: true });
  }
});
