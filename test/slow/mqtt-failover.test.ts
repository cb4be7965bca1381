/** Devices send over MQTT while the primary or the instance is killed: what was acknowledged is stored, once and in order. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { callApi, logIn } from '../support/api-call.js';
import { ADMIN } from '../support/fixture.js';
import { type Instance, startInstance } from '../support/instance.js';
import { AUTH } from '../support/mqtt-device.js';
import { type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import { roundsOf } from '../support/runs.js';
import { until } from '../support/until.js';
import { checkCounted, checkReceived, checkWritten } from './rounds/checker.js';
import { type Devices, startDevices } from './rounds/devices.js';
import { type Client, startClient } from './rounds/listeners.js';

const ROUNDS = roundsOf(4);
const OBJECTS = 20;
const CALM = 300;
const RECOVERY_MS = 60_000;
const SETTLED_MS = 30_000;
const RULES = { longestMs: Number.POSITIVE_INFINITY, cuts: true };

let set: ReplicaSet;
let database: MongoClient;
let instance: Instance;
let token = '';

beforeAll(async () => {
  set = await startReplicaSet();
  const uri = set.uri('vigil');
  instance = await startInstance(uri, { mqtt: true });
  database = await new MongoClient(uri).connect();
  token = await logIn(instance.url, ADMIN);
}, 120_000);

afterAll(async () => {
  await instance?.stop();
  await database?.close();
  await set?.stop();
}, 60_000);

interface Fault {
  readonly name: string;
  /** Whether devices are acknowledged before it is started again. */
  readonly goesOn: boolean;
  /** Kills something; gives what starts it again. */
  kill(): Promise<() => unknown>;
}

const FAULTS: Fault[] = [
  {
    ...{ name: 'primary', goesOn: true },
    async kill() {
      const primary = await set.primary();
      await primary.kill();
      return primary.start;
    },
  },
  {
    ...{ name: 'instance', goesOn: false },
    async kill() {
      await instance.kill();
      return instance.start;
    },
  },
];

test.each(FAULTS)(
  '$name killed: what devices were acknowledged is stored, and received, once and in order',
  async (fault) => {
    const { name } = fault;
    const objects = Array.from({ length: OBJECTS }, (_, at) => `${name}-${at}`);
    for (const id of objects) {
      const device = { id, name: id, config: { auth: AUTH } };
      expect((await callApi(instance.url, token, 'POST', 'objects', device)).status).toBe(200);
    }
    const common = { token, urls: [instance.url], protocol: 4 } as const;
    const clients = [false, true].map((restless) => startClient({ ...common, restless }));
    await until(() => clients.every((client) => client.isConnected()), 'every client to be connected', 30_000);
    const devices = await startDevices(instance.mqttUrl, objects);
    try {
      for (let round = 0; round < ROUNDS; round++) {
        await set.whole();
        await runRound(devices, fault);
        expect(await findProblems(clients, devices, objects)).toEqual([]);
      }
    } finally {
      await devices.stop();
      for (const client of clients) await client.stop();
      const told = devices.sent.filter(({ status }) => status === 200).length;
      process.stdout.write(
        `${name} killed, MQTT: ${devices.sent.length} messages, ${told} acknowledged, ${devices.sentAgain()} sent again\n`,
      );
    }
  },
  120_000 + ROUNDS * 120_000,
);

async function runRound(devices: Devices, { goesOn, kill }: Fault): Promise<void> {
  const goOn = (fromMs: number, what: string) =>
    until(() => devices.acknowledgedSince(fromMs) > CALM, what, RECOVERY_MS, 20);
  devices.resume();
  await goOn(performance.now(), 'devices to send');
  const atMs = performance.now();
  const mend = await kill();
  if (goesOn) await goOn(atMs, 'devices to send without it');
  await mend();
  await goOn(performance.now(), 'devices to go on');
  await devices.pause();
}

/** What is wrong when everything is sent and everyone had time to hear of it. */
async function findProblems(
  clients: readonly Client[],
  devices: Devices,
  objects: readonly string[],
): Promise<string[]> {
  const problems = async (): Promise<string[]> => {
    const packets = await readStored(objects, 'key');
    const last = new Set(await readStored(objects, 'last'));
    const stored = { packets, marks: new Map() };
    return [
      ...checkWritten(devices.sent, stored, RULES),
      ...checkCounted(packets),
      ...packets.filter((key) => !last.has(key)).map((key) => `stored by half: ${key}`),
      ...clients.flatMap((client) => {
        // That a device came or went is told, too.
        const received = client.received.filter(({ payload }) => payload.key !== undefined);
        const keys = received.filter((one) => one.name === 'object-packet').map(({ payload }) => payload.key as string);
        return [...checkReceived({ ...client, received }, devices.sent, stored), ...checkCounted(keys)];
      }),
    ];
  };
  let found: string[] = [];
  const isRight = async () => {
    found = await problems();
    return found.length === 0;
  };
  await until(isRight, 'everything to be right', SETTLED_MS, 200).catch(() => undefined);
  return found;
}

/** The keys of all packets that have one of this name, as the history of each object has them. */
async function readStored(objects: readonly string[], name: 'key' | 'last'): Promise<string[]> {
  const packets = await database
    .db()
    .collection('packets', { readConcern: { level: 'majority' } })
    .find({ id: { $in: [...objects] }, [name]: { $exists: true } })
    .sort({ time: 1, _ts: 1 })
    .project({ [name]: 1 })
    .toArray();
  return packets.map((packet) => packet[name]);
}
