// A fleet of 100,000 objects with five rules that keep states: what its packets write, how long an instance takes to take it over, and how
// much memory it needs.
import { setTimeout as wait } from 'node:timers/promises';
import { type Db, MongoClient } from 'mongodb';
import type { StoringBench } from './comparing.js';
import { openConnection, toRequest } from './connection.js';
import { databaseName, objectId } from './data.js';
import { storedObject } from './fill.js';
import { becomeQuiet } from './measure.js';
import { call, create } from './neighbours/stage.js';
import { readCpuMs, readMemoryMb, readPeakMb } from './process.js';
import { type Place, type RunningServer, startServer } from './servers.js';
import { format } from './stats.js';

export interface RuleBench extends StoringBench {
  readonly place: Place;
  readonly scale: number;
}

const OBJECTS = 100_000;
const LEAST_OBJECTS = 1_000;
/** Behind those of the other workloads. */
const FIRST = 0x100000;
const BATCH = 5_000;
const CONNECTIONS = 32;
const POLL_MS = 100;
/** Of an object that is asked for an alarm, so that all partitions are among them. */
const ASKED_EVERY = 500;
const LABEL = 'rule-fleet';
const LATEST_MS = 600_000;

/** Each keeps a state for each object. */
const RULES: readonly object[] = [
  { when: { silent: '1 d' } },
  { when: { param: 'speed', op: 'changed' }, for: '1 d' },
  { when: { param: 'speed', op: '>=', value: 0 }, for: '1 d' },
  {
    when: {
      all: [
        { param: 'speed', op: '>', value: -1 },
        { param: 'fuel', op: '<', value: 5 },
      ],
    },
  },
  {
    when: {
      any: [
        { param: 'alarmed', op: '==', value: 1 },
        { param: 'fuel', op: '<', value: 5 },
      ],
    },
  },
];

export async function measureFleet(bench: RuleBench): Promise<readonly string[]> {
  const { place, scale, mongodProcessId, say } = bench;
  const count = Math.max(LEAST_OBJECTS, Math.round(OBJECTS * scale));
  const client = await new MongoClient(place.mongodbUri).connect();
  const db = client.db(databaseName(place.mongodbUri, 'ours'));
  const { url, token } = bench.server;
  try {
    say(`Filling: ${count} objects …`);
    const labels = [LABEL];
    for (let from = 0; from < count; from += BATCH) {
      const numbers = Array.from({ length: Math.min(BATCH, count - from) }, (_, at) => FIRST + from + at);
      await db.collection('objects').insertMany(numbers.map((nth) => ({ ...storedObject(nth), labels })));
    }
    for (const [nth, rule] of RULES.entries()) {
      await create(url, token, 'rules', { name: `${LABEL} ${nth}`, select: { labels }, ...rule });
    }
    const lines = ['| Rules of a fleet | |', '|---|---|'];
    for (const [title, speed] of [
      ['the first packets', 1],
      ['more packets, which change no state', 1],
    ] as const) {
      const before = await writesOf(client);
      const cpuMs = readCpuMs(bench.server.processId);
      await postAll(bench.server, count, { speed, fuel: 50 });
      await countStates(db, count);
      await becomeQuiet([bench.server.processId, mongodProcessId], bench.timing);
      const usedMs = readCpuMs(bench.server.processId) - cpuMs;
      const writes = ((await writesOf(client)) - before) / count;
      lines.push(`| ${title}: documents written for each | ${format(writes)}; CPU ms ${format(usedMs / count)} |`);
    }
    const rows = await countStates(db, count);
    await bench.server.stop();
    lines.push(
      `| objects; rows of states | ${format(count)}; ${format(rows)} |`,
      ...(await takeOver(bench, client, count)),
    );
    return lines;
  } finally {
    await client.close();
  }
}

/** The rows of states, once each object has those of all rules: a busy machine may stand still before. */
async function countStates(db: Db, objects: number): Promise<number> {
  for (const startMs = performance.now(); performance.now() - startMs < LATEST_MS; await wait(POLL_MS)) {
    const rows = await db.collection('alarmStates').countDocuments();
    if (rows >= objects * RULES.length) return rows;
  }
  throw new Error(`not all of ${objects} objects have the states of all rules`);
}

/** An instance that takes over all of it, and one without these rules. */
async function takeOver(bench: RuleBench, client: MongoClient, count: number): Promise<readonly string[]> {
  const { place, mongodProcessId } = bench;
  const db = client.db(databaseName(place.mongodbUri, 'ours'));
  const own = { name: { $regex: `^${LABEL}` } };
  const server = await startServer('ours', place);
  const startMs = performance.now();
  const cpuMs = readCpuMs(server.processId);
  try {
    const asked = Array.from({ length: Math.ceil(count / ASKED_EVERY) }, (_, nth) => nth * ASKED_EVERY);
    for (const nth of asked) await post(server, nth, { alarmed: 1 });
    const alarms = db.collection('alarms');
    while ((await alarms.countDocuments({ status: 'raised' })) < asked.length) {
      if (performance.now() - startMs > LATEST_MS) throw new Error(`not all of ${asked.length} alarms are raised`);
      await wait(POLL_MS);
    }
    const tookS = (performance.now() - startMs) / 1_000;
    const tookCpuS = (readCpuMs(server.processId) - cpuMs) / 1_000;
    await becomeQuiet([server.processId, mongodProcessId], bench.timing);
    const memoryMb = readMemoryMb(server.processId);
    const peakMb = readPeakMb(server.processId);
    const rules = await db.collection('rules').find(own).toArray();
    await server.stop();
    await db.collection('rules').deleteMany(own);
    const without = await memoryWithout(bench);
    await db.collection('rules').insertMany(rules);
    return [
      `| takeover: from the start until each partition has raised an alarm | ${format(tookS)} s, CPU s ${format(tookCpuS)} |`,
      `| memory of the instance, MiB: after it, at its peak, without these rules | ${[memoryMb, peakMb, without].map(format).join(', ')} |`,
    ];
  } finally {
    await server.stop();
  }
}

async function memoryWithout({ place, mongodProcessId, timing }: RuleBench): Promise<number> {
  const server = await startServer('ours', place);
  try {
    await becomeQuiet([server.processId, mongodProcessId], timing);
    return readMemoryMb(server.processId);
  } finally {
    await server.stop();
  }
}

/** How many documents the database has written. */
async function writesOf(client: MongoClient): Promise<number> {
  const { metrics } = await client.db('admin').command({ serverStatus: 1 });
  const { inserted, updated, deleted } = metrics.document;
  return Number(inserted) + Number(updated) + Number(deleted);
}

const post = ({ url, token }: RunningServer, nth: number, packet: object): Promise<unknown> =>
  call(url, token, 'POST', `objects/${objectId(FIRST + nth)}/packets`, packet);

async function postAll({ url, token }: RunningServer, count: number, body: object): Promise<void> {
  let next = 0;
  const run = async (): Promise<void> => {
    const connection = openConnection(url);
    while (next < count) {
      const path = `/api/v1/objects/${objectId(FIRST + next++)}/packets`;
      const status = await connection.send(toRequest({ url, token }, { method: 'POST', path, body }));
      if (status !== 200) throw new Error(`POST ${path}: ${status}`);
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, run));
}
