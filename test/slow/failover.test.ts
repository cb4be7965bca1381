/**
 * The proof: devices and operators write through two instances, clients of both protocols come and go, and the database or
 * an instance is hurt. After each round everything that was received and stored is held to everything that was written.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { ADMIN } from '../support/fixture.js';
import { type Instance, startInstance } from '../support/instance.js';
import { type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import { roundsOf } from '../support/runs.js';
import { until } from '../support/until.js';
import { checkReceived, checkWritten, type Stored } from './rounds/checker.js';
import { type Client, startClient } from './rounds/listeners.js';
import { formatRow, type Measured, measure, TITLES } from './rounds/measures.js';
import { startWriters, type Writers } from './rounds/writers.js';

const ROUNDS = roundsOf(4);
const OBJECTS = 6;
const CALM = 60;
const RECOVERY_MS = 60_000;
const SETTLED_MS = 30_000;
// Five seconds for the database, and some for a machine that has other things to do.
const LONGEST_ANSWER_MS = 9_000;

let set: ReplicaSet;
let database: MongoClient;
const instances: Instance[] = [];
const rows: string[] = [];

beforeAll(async () => {
  set = await startReplicaSet();
  const uri = set.uri('vigil');
  for (let at = 0; at < 2; at++) instances.push(await startInstance(uri));
  database = await new MongoClient(uri).connect();
}, 120_000);

afterAll(async () => {
  for (const instance of instances) await instance.stop();
  await database?.close();
  await set?.stop();
  process.stdout.write(`${[TITLES, ...rows].join('\n')}\n`);
}, 60_000);

interface Harm {
  /** When it was done; ms of the process' own clock. */
  readonly atMs: number;
  mend(): unknown;
}

interface Fault {
  readonly name: string;
  /** Whether connections to the service may be cut. */
  readonly cuts: boolean;
  hurt(): Promise<Harm>;
}

async function harm(act: () => unknown, mend: () => unknown): Promise<Harm> {
  const atMs = performance.now();
  await act();
  return { atMs, mend };
}

const FAULTS: Fault[] = [
  {
    ...{ name: 'primary steps down', cuts: false },
    async hurt() {
      const primary = await set.primary();
      return harm(primary.stepDown, () => undefined);
    },
  },
  {
    ...{ name: 'primary killed', cuts: false },
    async hurt() {
      const primary = await set.primary();
      return harm(primary.kill, primary.start);
    },
  },
  {
    ...{ name: 'primary frozen', cuts: false },
    async hurt() {
      const primary = await set.primary();
      return harm(primary.freeze, primary.thaw);
    },
  },
  {
    ...{ name: 'instance killed', cuts: true },
    hurt() {
      const instance = instances[Math.floor(Math.random() * instances.length)] as Instance;
      return harm(instance.kill, instance.start);
    },
  },
];

test.each(FAULTS)(
  '$name: what was acknowledged is stored, and everyone received what is stored, once and in order',
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
  60_000 + ROUNDS * 60_000,
);

/** Writers, and clients that have a position to come back with: all have seen every object once. */
async function startTraffic(name: string): Promise<{ clients: Client[]; writers: Writers }> {
  const urls = instances.map(({ url }) => url);
  const call = async (path: string, body: object): Promise<{ token: string }> => {
    const response = await fetch(`${urls[0]}/api/v1/${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...(token !== '' && { Authorization: `Bearer ${token}` }) },
      body: JSON.stringify(body),
    });
    expect(response.status).toBe(200);
    return (await response.json()) as { token: string };
  };
  let token = '';
  token = (await call('auth/token', ADMIN)).token;
  const objects = Array.from({ length: OBJECTS }, (_, at) => `${name}-${at}`);
  for (const id of objects) await call('objects', { id, name: id });
  const common = { token, urls };
  const clients = [
    ...urls.map((url) => startClient({ token, urls: [url], protocol: 4, restless: false })),
    ...([3, 3, 4, 4] as const).map((protocol) => startClient({ ...common, protocol, restless: protocol === 3 })),
    ...([3, 4, 4] as const).map((protocol) => startClient({ ...common, protocol, restless: true })),
  ];
  await until(() => clients.every((client) => client.isConnected()), 'every client to be connected', RECOVERY_MS);
  const writers = startWriters(urls, token, objects);
  writers.resume();
  await until(
    () => clients.every(({ received }) => received.length > 0),
    'every client to hear something',
    RECOVERY_MS,
  );
  return { clients, writers };
}

async function runRound(fault: Fault, clients: readonly Client[], writers: Writers): Promise<Measured> {
  writers.resume();
  await acknowledge(writers, CALM, 'the writers to write');
  const { atMs, mend } = await fault.hurt();
  await until(() => acknowledgedSince(writers, atMs) > CALM, 'writes to go on', RECOVERY_MS);
  const steady = fault.cuts ? [] : clients.slice(0, instances.length);
  const goneOnMs = performance.now();
  const isHearing = ({ received }: Client): boolean => (received.at(-1)?.atMs ?? 0) > goneOnMs;
  await until(() => steady.every(isHearing), 'events to go on', RECOVERY_MS);
  const untilMs = performance.now();
  await mend();
  await acknowledge(writers, CALM, 'the writers to go on');
  await writers.pause();
  return measure({ fromMs: atMs, untilMs, sent: writers.sent, steady });
}

const acknowledgedSince = (writers: Writers, fromMs: number): number => {
  const all = writers.acknowledged();
  let count = 0;
  while (count < all.length && (all[all.length - 1 - count]?.startMs ?? 0) > fromMs) count++;
  return count;
};

async function acknowledge(writers: Writers, more: number, what: string): Promise<void> {
  const before = writers.acknowledged().length;
  await until(() => writers.acknowledged().length >= before + more, what, RECOVERY_MS);
}

/** What is wrong when nothing is written any more and everyone had time to hear of it. */
async function findProblems({ cuts }: Fault, clients: readonly Client[], writers: Writers): Promise<string[]> {
  const objects = [...new Set(writers.sent.map(({ object }) => object))];
  const problems = async (): Promise<string[]> => {
    const stored = await readStored(objects);
    return [
      ...checkWritten(writers.sent, stored, { longestMs: LONGEST_ANSWER_MS, cuts }),
      ...clients.flatMap((client) => checkReceived(client, writers.sent, stored)),
    ];
  };
  let found: string[] = [];
  const isRight = async () => {
    found = await problems();
    return found.length === 0;
  };
  // A write that nobody was told of may still be on its way.
  await until(isRight, 'everything to be right', SETTLED_MS, 100).catch(() => undefined);
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
