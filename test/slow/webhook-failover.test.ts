/**
 * Failover of webhooks: writers use two instances, receivers fail in every way, and the owners of the partitions or the primary
 * fail. After each round every receiver has accepted all stored events, in order.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { callApi, callUntilAvailable, logIn } from '../support/api-call.js';
import { ADMIN } from '../support/fixture.js';
import { type Instance, startInstance } from '../support/instance.js';
import { type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import { random, roundsOf } from '../support/runs.js';
import { until } from '../support/until.js';
import { RECEIVERS, type Receivers, startReceivers } from './failover/receivers.js';
import { checkReceived, findWaiting } from './failover/webhook-checker.js';
import { startWriters, type Writers } from './failover/writers.js';

const ROUNDS = roundsOf(3);
const OBJECTS = 12;
const PACE_MS = 200;
/** A takeover and the repetition of a message that got no answer need not take long. */
const limits = { partitionLeaseMs: 3_000, partitionMarginMs: 700, webhookAnswerMs: 4_000 };
/** Acknowledged requests that show that the service accepts writes. */
const ENOUGH = 40;

let set: ReplicaSet;
let database: MongoClient;
let receivers: Receivers;
const instances: Instance[] = [];

beforeAll(async () => {
  set = await startReplicaSet();
  const uri = set.uri('vigil');
  const env = { WEBHOOK_NETWORKS: '127.0.0.1' };
  instances.push(...(await Promise.all([startInstance(uri, { env, limits }), startInstance(uri, { env, limits })])));
  database = await new MongoClient(uri).connect();
  receivers = await startReceivers();
});

afterAll(async () => {
  await Promise.all(instances.map((instance) => instance.stop()));
  await receivers?.stop();
  await database?.close();
  await set?.stop();
});

interface Damage {
  /** The time from which receivers wait for a takeover, by the clock of this process. */
  readonly atMs: number;
  repair(): unknown;
}

interface Fault {
  readonly name: string;
  cause(writers: Writers, urls: string[]): Promise<Damage>;
}

const anyInstance = (): Instance => instances[Math.floor(random() * instances.length)] as Instance;

async function damage(act: () => unknown, repair: () => unknown = () => undefined): Promise<Damage> {
  const atMs = performance.now();
  await act();
  return { atMs, repair };
}

const FAULTS: Fault[] = [
  {
    name: 'an owner is killed',
    cause() {
      const instance = anyInstance();
      return damage(instance.kill, instance.start);
    },
  },
  {
    name: 'both owners are killed',
    async cause() {
      await Promise.all(instances.map((instance) => instance.kill()));
      const [first, second] = instances as [Instance, Instance];
      await first.start();
      return damage(() => undefined, second.start);
    },
  },
  {
    name: 'an owner is frozen for longer than its lease',
    async cause(writers, urls) {
      const instance = anyInstance();
      // A writer that waits for its answer would write nothing meanwhile.
      await writers.pause();
      const all = urls.splice(0);
      urls.push(...all.filter((url) => url !== instance.url));
      return damage(
        async () => {
          await instance.freeze();
          writers.resume();
        },
        () => {
          instance.thaw();
          urls.splice(0, urls.length, ...all);
        },
      );
    },
  },
  {
    name: 'the primary steps down',
    async cause() {
      const primary = await set.primary();
      return damage(primary.stepDown);
    },
  },
  {
    name: 'the primary is killed',
    async cause() {
      const primary = await set.primary();
      return damage(primary.kill, primary.start);
    },
  },
];

test.each(FAULTS)(
  'delivers all stored events in order to receivers that fail when $name',
  async (fault) => {
    const { writers, urls, objects, end } = await startTraffic(fault.name.replace(/\W/g, '-'));
    try {
      for (let round = 0; round < ROUNDS; round++) {
        await set.whole();
        await runRound(fault, { writers, urls, objects });
        expect(await findProblems(writers, objects)).toEqual([]);
      }
    } finally {
      await writers.pause();
      await end();
    }
  },
  ROUNDS * 900_000,
);

interface Traffic {
  readonly writers: Writers;
  /** The instances that writers use. */
  readonly urls: string[];
  readonly objects: readonly string[];
}

/** Objects of the test's own, a handler for each receiver, and writers. */
async function startTraffic(name: string): Promise<Traffic & { end(): Promise<void> }> {
  const urls = instances.map(({ url }) => url);
  const [url] = urls as [string];
  const token = await logIn(url, ADMIN);
  const objects = Array.from({ length: OBJECTS }, (_, at) => `${name}-${at}`);
  for (const id of objects) await callUntilAvailable(url, token, 'POST', 'objects', { id, name: id });
  receivers.clear();
  const common = { objects, events: ['object-packet', 'object-update'] };
  const handlers: string[] = [];
  for (const receiver of RECEIVERS) {
    const mode = receiver === 'failing-batch' ? 'batch' : 'object';
    const handler = { ...common, name: receiver, mode, url: receivers.url(receiver) };
    const { status, body } = await callUntilAvailable(url, token, 'POST', 'handlers', handler);
    expect(status).toBe(200);
    handlers.push(body._id);
  }
  const writers = startWriters(urls, token, objects, PACE_MS);
  const end = async (): Promise<void> => {
    for (const id of handlers) await callApi(url, token, 'DELETE', `handlers/${id}`);
  };
  return { writers, urls, objects, end };
}

async function runRound(fault: Fault, { writers, urls, objects }: Traffic): Promise<void> {
  await until(isBalanced, 'both instances to own half of the partitions', 60_000, 50);
  writers.resume();
  await acknowledge(writers, 'before the fault');
  receivers.hangOnce();
  const { atMs, repair } = await fault.cause(writers, urls);
  try {
    // Before the repair: the other instance, or another member, has taken over.
    const isTakenOver = () => findWaiting(receivers, writers.sent, { fromMs: atMs, objects }).length === 0;
    await until(isTakenOver, 'webhooks of every object during the fault', 60_000, 50);
  } finally {
    await repair();
  }
  await acknowledge(writers, 'after the repair');
  await writers.pause();
}

/** Whether an instance that died owns no partition any more, and an instance that started has its share. */
async function isBalanced(): Promise<boolean> {
  const partitions = await database.db().collection('partitions').find().toArray();
  const counts = new Map<string, number>();
  for (const { owner } of partitions) counts.set(String(owner), (counts.get(String(owner)) ?? 0) + 1);
  return counts.size === 2 && !counts.has('null') && Math.max(...counts.values()) - Math.min(...counts.values()) <= 1;
}

async function acknowledge(writers: Writers, when: string): Promise<void> {
  const count = writers.acknowledged().length + ENOUGH;
  await until(() => writers.acknowledged().length >= count, `${ENOUGH} writes ${when}`);
}

/** The problems that remain when all writes have ended and all messages have been sent, also repeated ones. */
async function findProblems(writers: Writers, objects: readonly string[]): Promise<string[]> {
  const packets = database.db().collection('packets', { readConcern: { level: 'majority' } });
  let found: string[] = [];
  const isRight = async () => {
    const stored = await packets
      .find({ id: { $in: [...objects] } })
      .project({ key: 1 })
      .toArray();
    found = checkReceived(
      receivers,
      writers.sent,
      stored.map(({ key }) => key),
    );
    return found.length === 0;
  };
  // The problems themselves say more than the time-out.
  await until(isRight, 'no problem', 60_000, 100).catch(() => undefined);
  return found;
}
