/**
 * The proof of webhooks: devices and operators write through two instances, receivers fail in every way, and the owners of
 * the partitions or the database are hurt. After each round everything that is stored was taken by every receiver, in order.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { callApi, logIn } from '../support/api-call.js';
import { ADMIN } from '../support/fixture.js';
import { type Instance, startInstance } from '../support/instance.js';
import { type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import { roundsOf } from '../support/runs.js';
import { until } from '../support/until.js';
import { RECEIVERS, type Receivers, startReceivers } from './rounds/receivers.js';
import { checkReceived, countRepeated, findDelays } from './rounds/webhook-checker.js';
import { startWriters, type Writers } from './rounds/writers.js';

const ROUNDS = roundsOf(3);
const OBJECTS = 16;
const PACE_MS = 300;
const CALM = 60;
const TAKEOVER_MS = 10_000;
const RECOVERY_MS = 60_000;
// A request that is never answered ends after 15 s, and is sent again; a message may fail twice.
const SETTLED_MS = 60_000;

let set: ReplicaSet;
let database: MongoClient;
let receivers: Receivers;
const instances: Instance[] = [];
const rows: string[] = [];

beforeAll(async () => {
  set = await startReplicaSet();
  const uri = set.uri('vigil');
  for (let at = 0; at < 2; at++) {
    instances.push(await startInstance(uri, { env: { WEBHOOK_NETWORKS: '127.0.0.1' } }));
  }
  database = await new MongoClient(uri).connect();
  receivers = await startReceivers();
}, 120_000);

afterAll(async () => {
  for (const instance of instances) await instance.stop();
  await receivers?.stop();
  await database?.close();
  await set?.stop();
  process.stdout.write(`${rows.join('\n')}\n`);
}, 60_000);

interface Harm {
  /** From when on receivers wait for somebody to take over; ms of the process' own clock. */
  readonly atMs: number;
  mend(): unknown;
}

interface Fault {
  readonly name: string;
  /** Within which time every object goes on. */
  readonly withinMs: number;
  hurt(writers: Writers, urls: string[]): Promise<Harm>;
}

const anyInstance = (): Instance => instances[Math.floor(Math.random() * instances.length)] as Instance;

async function harm(act: () => unknown, mend: () => unknown = () => undefined): Promise<Harm> {
  const atMs = performance.now();
  await act();
  return { atMs, mend };
}

const FAULTS: Fault[] = [
  {
    ...{ name: 'an owner killed', withinMs: TAKEOVER_MS },
    hurt() {
      const instance = anyInstance();
      return harm(instance.kill, instance.start);
    },
  },
  {
    ...{ name: 'both owners killed', withinMs: TAKEOVER_MS },
    async hurt() {
      await Promise.all(instances.map((instance) => instance.kill()));
      const [first, second] = instances as [Instance, Instance];
      await first.start();
      return harm(() => undefined, second.start);
    },
  },
  {
    ...{ name: 'an owner frozen for longer than its lease', withinMs: TAKEOVER_MS },
    async hurt(writers, urls) {
      const instance = anyInstance();
      // Whoever waited for its answers would write nothing meanwhile.
      await writers.pause();
      const all = urls.splice(0);
      urls.push(...all.filter((url) => url !== instance.url));
      return harm(
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
    ...{ name: 'primary steps down', withinMs: RECOVERY_MS },
    async hurt() {
      const primary = await set.primary();
      return harm(primary.stepDown);
    },
  },
  {
    ...{ name: 'primary killed', withinMs: RECOVERY_MS },
    async hurt() {
      const primary = await set.primary();
      return harm(primary.kill, primary.start);
    },
  },
];

test.each(FAULTS)(
  '$name: receivers that fail take everything that is stored, in order',
  async (fault) => {
    const { writers, urls, objects, end } = await startTraffic(fault.name.replace(/\W/g, '-'));
    const delays: number[] = [];
    try {
      for (let round = 0; round < ROUNDS; round++) {
        await set.whole();
        delays.push(await runRound(fault, { writers, urls, objects }));
        expect(await findProblems(writers, objects)).toEqual([]);
      }
      expect(Math.max(...delays)).toBeLessThan(fault.withinMs);
    } finally {
      await writers.pause();
      const sorted = delays.sort((a, b) => a - b).map(Math.round);
      const took = `took over after ${sorted[Math.floor(sorted.length / 2)]} ms, at most ${sorted.at(-1)} ms`;
      const treated = [...receivers.counts].map(([name, count]) => `${name} ${count}`).join(', ');
      const repeated = countRepeated(receivers.arrivals);
      rows.push(
        `${fault.name}: ${sorted.length} rounds, ${took}; ${receivers.arrivals.length} arrivals, ${repeated} repeated; ${treated}`,
      );
      await end();
    }
  },
  90_000 + ROUNDS * 90_000,
);

interface Traffic {
  readonly writers: Writers;
  /** The instances that are written through. */
  readonly urls: string[];
  readonly objects: readonly string[];
}

/** Objects of the test's own, a handler for each receiver, and writers. */
async function startTraffic(name: string): Promise<Traffic & { end(): Promise<void> }> {
  const urls = instances.map(({ url }) => url);
  const [url] = urls as [string];
  const token = await logIn(url, ADMIN);
  const objects = Array.from({ length: OBJECTS }, (_, at) => `${name}-${at}`);
  for (const id of objects) await callApi(url, token, 'POST', 'objects', { id, name: id });
  receivers.clear();
  const common = { objects, events: ['object-packet', 'object-update'] };
  const handlers: string[] = [];
  for (const receiver of RECEIVERS) {
    const mode = receiver === 'failing-batch' ? 'batch' : 'object';
    const handler = { ...common, name: receiver, mode, url: receivers.url(receiver) };
    const { status, body } = await callApi(url, token, 'POST', 'handlers', handler);
    expect(status).toBe(200);
    handlers.push(body._id);
  }
  const writers = startWriters(urls, token, objects, PACE_MS);
  const end = async (): Promise<void> => {
    for (const id of handlers) await callApi(url, token, 'DELETE', `handlers/${id}`);
  };
  return { writers, urls, objects, end };
}

/** Gives how long it took until every object went on. */
async function runRound(fault: Fault, { writers, urls, objects }: Traffic): Promise<number> {
  await until(isBalanced, 'both instances to own partitions', RECOVERY_MS, 100);
  writers.resume();
  await acknowledge(writers, CALM, 'the writers to write');
  receivers.hangOnce();
  const { atMs, mend } = await fault.hurt(writers, urls);
  const delaysOf = () => findDelays(receivers, writers.sent, { fromMs: atMs, objects });
  try {
    await until(delaysOf, 'webhooks of every object to go on', RECOVERY_MS, 50);
  } finally {
    await mend();
  }
  const delayMs = Math.max(...(delaysOf() ?? []));
  await acknowledge(writers, CALM, 'the writers to go on');
  await writers.pause();
  return delayMs;
}

/** Who has died is no owner any more, and who has come has its share. */
async function isBalanced(): Promise<boolean> {
  const partitions = await database.db().collection('partitions').find().toArray();
  const counts = new Map<string, number>();
  for (const { owner } of partitions) counts.set(String(owner), (counts.get(String(owner)) ?? 0) + 1);
  return counts.size === 2 && Math.max(...counts.values()) - Math.min(...counts.values()) <= 1;
}

async function acknowledge(writers: Writers, more: number, what: string): Promise<void> {
  const before = writers.acknowledged().length;
  await until(() => writers.acknowledged().length >= before + more, what, RECOVERY_MS);
}

/** What is wrong when nothing is written any more and everything had time to be sent again. */
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
  await until(isRight, 'everything to be right', SETTLED_MS, 250).catch(() => undefined);
  return found;
}
