/**
 * Failover: writers use two instances, clients of both protocols reconnect all the time, and the primary or an instance fails.
 * After each round the checker compares the stored packets and all received events with the requests.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { callUntilAvailable, logIn } from '../support/api-call.js';
import { ADMIN } from '../support/fixture.js';
import { type Instance, startInstance } from '../support/instance.js';
import { type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import { isSoak, random, roundsOf } from '../support/runs.js';
import { until } from '../support/until.js';
import { checkReceived, checkWritten, type Stored } from './failover/checker.js';
import { type Client, startClient } from './failover/listeners.js';
import { formatRow, type Measured, measure, TITLES } from './failover/measures.js';
import { startWriters, type Writers } from './failover/writers.js';

const ROUNDS = roundsOf(20);
const OBJECTS = 6;
/** Acknowledged requests that show that the service accepts writes. */
const ENOUGH = 60;

let set: ReplicaSet;
let database: MongoClient;
const instances: Instance[] = [];
const rows: string[] = [];

beforeAll(async () => {
  set = await startReplicaSet();
  const uri = set.uri('vigil');
  instances.push(...(await Promise.all([startInstance(uri), startInstance(uri)])));
  database = await new MongoClient(uri).connect();
});

afterAll(async () => {
  await Promise.all(instances.map((instance) => instance.stop()));
  await database?.close();
  await set?.stop();
  if (isSoak) process.stdout.write(`${[TITLES, ...rows].join('\n')}\n`);
});

interface Damage {
  /** The time of the fault, by the clock of this process. */
  readonly atMs: number;
  repair(): unknown;
}

interface Fault {
  readonly name: string;
  /** Whether connections to the service may break. */
  readonly cuts: boolean;
  cause(): Promise<Damage>;
}

async function damage(act: () => unknown, repair: () => unknown): Promise<Damage> {
  const atMs = performance.now();
  await act();
  return { atMs, repair };
}

const FAULTS: Fault[] = [
  {
    name: 'the primary steps down',
    cuts: false,
    async cause() {
      const primary = await set.primary();
      return damage(primary.stepDown, () => undefined);
    },
  },
  {
    name: 'the primary is killed',
    cuts: false,
    async cause() {
      const primary = await set.primary();
      return damage(primary.kill, primary.start);
    },
  },
  {
    name: 'the primary is frozen',
    cuts: false,
    async cause() {
      const primary = await set.primary();
      return damage(primary.freeze, primary.thaw);
    },
  },
  {
    name: 'an instance is killed',
    cuts: true,
    cause() {
      const instance = instances[Math.floor(random() * instances.length)] as Instance;
      return damage(instance.kill, instance.start);
    },
  },
];

test.each(FAULTS)(
  'stores acknowledged writes and sends every client all stored ones, once and in order, when $name',
  async (fault) => {
    const { clients, writers } = await startTraffic(fault.name.replace(/\W/g, '-'));
    const measured: Measured[] = [];
    try {
      for (let round = 0; round < ROUNDS; round++) {
        await set.whole();
        measured.push(await runRound(fault, clients, writers));
        expect(await findProblems(fault, clients, writers)).toEqual([]);
      }
    } finally {
      await writers.pause();
      for (const client of clients) await client.stop();
      rows.push(formatRow(fault.name, measured));
    }
  },
  ROUNDS * 900_000,
);

/** Writers, and clients that have received an event and so have a position to resume from. */
async function startTraffic(name: string): Promise<{ clients: Client[]; writers: Writers }> {
  const urls = instances.map(({ url }) => url);
  const [url] = urls as [string];
  const token = await logIn(url, ADMIN);
  const objects = Array.from({ length: OBJECTS }, (_, at) => `${name}-${at}`);
  for (const id of objects) {
    const { status } = await callUntilAvailable(url, token, 'POST', 'objects', { id, name: id });
    expect([200, 409]).toContain(status);
  }
  const common = { token, urls };
  const clients = [
    ...urls.map((url) => startClient({ token, urls: [url], protocol: 4, restless: false })),
    ...([3, 3, 4, 4] as const).map((protocol) => startClient({ ...common, protocol, restless: protocol === 3 })),
    ...([3, 4, 4] as const).map((protocol) => startClient({ ...common, protocol, restless: true })),
  ];
  await until(() => clients.every((client) => client.isConnected()), 'every client to be connected');
  const writers = startWriters(urls, token, objects);
  writers.resume();
  await until(() => clients.every(({ received }) => received.length > 0), 'every client to receive an event');
  return { clients, writers };
}

async function runRound(fault: Fault, clients: readonly Client[], writers: Writers): Promise<Measured> {
  writers.resume();
  await acknowledge(writers, 'before the fault');
  const { atMs, repair } = await fault.cause();
  // Writes and events continue before the repair: that the other members or the other instance take over is the promise.
  await until(() => acknowledgedSince(writers, atMs) > ENOUGH, `${ENOUGH} writes during the fault`);
  const steady = fault.cuts ? [] : clients.slice(0, instances.length);
  const writtenMs = performance.now();
  const hasEvents = ({ received }: Client): boolean => (received.at(-1)?.atMs ?? 0) > writtenMs;
  await until(() => steady.every(hasEvents), 'events during the fault');
  const untilMs = performance.now();
  await repair();
  await acknowledge(writers, 'after the repair');
  await writers.pause();
  return measure({ fromMs: atMs, untilMs, sent: writers.sent, steady });
}

const acknowledgedSince = (writers: Writers, fromMs: number): number => {
  const all = writers.acknowledged();
  let count = 0;
  while (count < all.length && (all[all.length - 1 - count]?.startMs ?? 0) > fromMs) count++;
  return count;
};

async function acknowledge(writers: Writers, when: string): Promise<void> {
  const count = writers.acknowledged().length + ENOUGH;
  await until(() => writers.acknowledged().length >= count, `${ENOUGH} writes ${when}`);
}

/** The problems that remain when all writes have ended and all events have arrived. */
async function findProblems({ cuts }: Fault, clients: readonly Client[], writers: Writers): Promise<string[]> {
  const objects = [...new Set(writers.sent.map(({ object }) => object))];
  const problems = async (): Promise<string[]> => {
    const stored = await readStored(objects);
    return [
      ...checkWritten(writers.sent, stored, { cuts }),
      ...clients.flatMap((client) => checkReceived(client, writers.sent, stored)),
    ];
  };
  let found: string[] = [];
  const isRight = async () => {
    found = await problems();
    return found.length === 0;
  };
  // Events may still arrive, and the problems themselves say more than the time-out.
  await until(isRight, 'no problem', 60_000, 100).catch(() => undefined);
  return found;
}

async function readStored(objects: readonly string[]): Promise<Stored> {
  const majority = { readConcern: { level: 'majority' } } as const;
  const named = { id: { $in: [...objects] } };
  const db = database.db();
  const packets = await db.collection('packets', majority).find(named).project({ key: 1 }).toArray();
  const marked = await db.collection('objects', majority).find(named).project({ mark: 1 }).toArray();
  return {
    packets: packets.map(({ key }) => key),
    marks: new Map(marked.flatMap(({ _id, mark }) => (mark === undefined ? [] : [[String(_id), mark]]))),
  };
}
