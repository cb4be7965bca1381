/** Devices publish over MQTT while the primary or the instance is killed: acknowledged messages are stored once and in order. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { callUntilAvailable, logIn } from '../support/api-call.js';
import { ADMIN } from '../support/fixture.js';
import { type Instance, startInstance } from '../support/instance.js';
import { AUTH } from '../support/mqtt-device.js';
import { type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import { roundsOf } from '../support/runs.js';
import { until } from '../support/until.js';
import { checkCounted, checkReceived, checkWritten } from './failover/checker.js';
import { type Devices, startDevices } from './failover/devices.js';
import { type Client, startClient } from './failover/listeners.js';

const ROUNDS = roundsOf(4);
const OBJECTS = 20;
/** Messages that show that devices can publish. */
const ENOUGH = 200;
const RULES = { cuts: true };

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
});

afterAll(async () => {
  await instance?.stop();
  await database?.close();
  await set?.stop();
});

interface Fault {
  readonly name: string;
  /** Whether the service acknowledges messages before the killed process runs again. */
  readonly isReplaced: boolean;
  /** Kills a process; returns the function that starts it again. */
  kill(): Promise<() => unknown>;
}

const FAULTS: Fault[] = [
  {
    name: 'primary',
    isReplaced: true,
    async kill() {
      const primary = await set.primary();
      await primary.kill();
      return primary.start;
    },
  },
  {
    name: 'instance',
    isReplaced: false,
    async kill() {
      await instance.kill();
      return instance.start;
    },
  },
];

test.each(FAULTS)(
  'stores and sends acknowledged messages once and in order after the $name was killed',
  async (fault) => {
    const objects = Array.from({ length: OBJECTS }, (_, at) => `${fault.name}-${at}`);
    for (const id of objects) {
      const device = { id, name: id, config: { auth: AUTH } };
      expect([200, 409]).toContain((await callUntilAvailable(instance.url, token, 'POST', 'objects', device)).status);
    }
    const common = { token, urls: [instance.url], protocol: 4 } as const;
    const clients = [false, true].map((restless) => startClient({ ...common, restless }));
    await until(() => clients.every((client) => client.isConnected()), 'every client to be connected');
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
    }
  },
  ROUNDS * 900_000,
);

async function runRound(devices: Devices, { isReplaced, kill }: Fault): Promise<void> {
  const arePublishing = (fromMs: number, when: string) =>
    until(() => devices.acknowledgedSince(fromMs) > ENOUGH, `${ENOUGH} acknowledged messages ${when}`);
  devices.resume();
  await arePublishing(performance.now(), 'before the fault');
  const atMs = performance.now();
  const restart = await kill();
  if (isReplaced) await arePublishing(atMs, 'during the fault');
  await restart();
  await arePublishing(performance.now(), 'after the fault');
  await devices.pause();
}

/** The problems that remain when everything has been sent and received. */
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
        // Packets of presence have no key.
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
  // The problems themselves say more than the time-out.
  await until(isRight, 'no problem', 60_000, 200).catch(() => undefined);
  return found;
}

/** The values of this field in all packets, in the order of the history of each object. */
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
