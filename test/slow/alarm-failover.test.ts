/**
 * Alarms when instances are killed while packets arrive, also late and unordered ones: what was raised, cleared and commanded is exactly
 * what a naive evaluator says of the packets that are stored, in the order in which they were stored.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Document, MongoClient, ObjectId } from 'mongodb';
import { callApi, callUntilAvailable, logIn } from '../support/api-call.js';
import { ADMIN, testUri } from '../support/fixture.js';
import { type Instance, startInstance } from '../support/instance.js';
import { endPartitionLeases } from '../support/leases.js';
import { above, both, type NaiveRule, naiveSpans, opposite, type Span } from '../support/naive-alarms.js';
import { random, roundsOf } from '../support/runs.js';
import { until } from '../support/until.js';

const ROUNDS = roundsOf(6);
const OBJECTS = 10;
/** Acknowledged packets between two faults. */
const ENOUGH = 60;
/**
 * The clocks of the devices go on by whole steps of this length. Where no packet comes for long, time alone goes on by the service's clock,
 * and an alarm may follow from that: a step is longer than this test waits for anything.
 */
const STEP_MS = 10 * 60_000;
/**
 * An instance that is only a little late keeps its partitions. A write of a killed one may renew its leases after they were ended: they must
 * end well before this test ceases to wait. Devices send as fast as they are answered, and rules command as often.
 */
const limits = { partitionLeaseMs: 15_000, ruleCommands: 1_000_000 };

interface Rule extends NaiveRule {
  readonly fields: object;
}

const then = (command: string) => [{ command }];

const RULES: Readonly<Record<string, Rule>> = {
  hysteresis: {
    fields: {
      when: { param: 't', op: '>', value: 8 },
      for: 20 * STEP_MS,
      clear: { param: 't', op: '<', value: 6 },
      clearFor: 10 * STEP_MS,
      then: then('cool'),
      escalate: [{ after: 0, then: then('stop') }],
    },
    forMs: 20 * STEP_MS,
    clearForMs: 10 * STEP_MS,
    hot: ({ t }) => above(t, 8),
    over: ({ t }) => (typeof t === 'number' ? t < 6 : null),
  },
  all: {
    fields: {
      when: {
        all: [
          { param: 't', op: '>', value: 8 },
          { param: 'u', op: '>', value: 4 },
        ],
      },
      then: then('both'),
    },
    forMs: 0,
    clearForMs: 0,
    hot: ({ t, u }) => both(above(t, 8), above(u, 4)),
    over: ({ t, u }) => opposite(both(above(t, 8), above(u, 4))),
  },
  expression: {
    fields: { when: { expr: 'p.t - p.u > 3' }, for: 5 * STEP_MS, then: then('differ') },
    forMs: 5 * STEP_MS,
    clearForMs: 0,
    hot: (_, { t, u }) => (typeof t === 'number' && typeof u === 'number' ? t - u > 3 : null),
    over: (_, { t, u }) => (typeof t === 'number' && typeof u === 'number' ? t - u <= 3 : null),
  },
};

let database: MongoClient;
let token: string;
const instances: Instance[] = [];
const ids: string[] = [];
const ruleIds: Record<string, string> = {};

beforeAll(async () => {
  const uri = testUri();
  instances.push(await startInstance(uri, { limits }));
  instances.push(await startInstance(uri, { limits }));
  database = await new MongoClient(uri).connect();
  token = await logIn((instances[0] as Instance).url, ADMIN);
  for (const [name, { fields }] of Object.entries(RULES)) {
    ruleIds[name] = await create('rules', { name, control: '300 days', ...fields });
  }
  for (let index = 0; index < OBJECTS; index++) ids.push(await create('objects', { id: `o${index}`, name: 'o' }));
});

afterAll(async () => {
  await Promise.all(instances.map((instance) => instance.stop()));
  await database?.close();
});

async function create(store: string, fields: object): Promise<string> {
  const { status, body } = await callUntilAvailable((instances[0] as Instance).url, token, 'POST', store, fields);
  expect([store, status, body.helper]).toEqual([store, 200, undefined]);
  return body._id;
}

const pick = (below: number): number => Math.floor(random() * below);

/** What a device sends next; some of it is older than what it has sent. */
function nextPacket(clock: { ms: number }): object {
  const isLate = random() < 0.15;
  if (!isLate) clock.ms += pick(15) * STEP_MS;
  const time = isLate ? clock.ms - pick(60) * STEP_MS : clock.ms;
  const value = (): number | null => (random() < 0.1 ? null : pick(12));
  return { time, ...(random() < 0.8 && { t: value() }), ...(random() < 0.7 && { u: value() }) };
}

interface Device {
  readonly objectId: string;
  readonly clock: { ms: number };
}

/** Sends a packet, again and again over any instance until one has answered. */
async function send({ objectId }: Device, packet: object): Promise<void> {
  for (;;) {
    const { url } = instances[pick(instances.length)] as Instance;
    try {
      const { status } = await callApi(url, token, 'POST', `objects/${objectId}/packets`, packet);
      if (status === 200) return;
      if (status !== 503) throw new Error(`the packet was answered ${status}`);
    } catch (error) {
      if (error instanceof Error && error.message.startsWith('the packet')) throw error;
    }
  }
}

/** Lets devices send until it is stopped; counts what was acknowledged. */
function startDevices(devices: readonly Device[]) {
  const sent = { count: 0 };
  let isStopped = false;
  const run = async (device: Device): Promise<void> => {
    while (!isStopped) {
      await send(device, nextPacket(device.clock));
      sent.count++;
    }
  };
  const running = devices.map(run);
  const stop = async (): Promise<void> => {
    isStopped = true;
    await Promise.all(running);
  };
  const more = async (): Promise<void> => {
    const before = sent.count;
    await until(() => sent.count >= before + ENOUGH, 'packets to be acknowledged', 120_000);
  };
  return { stop, more };
}

const storedOf = (objectId: string): Promise<Document[]> =>
  database
    .db()
    .collection('packets')
    .find({ _oid: new ObjectId(objectId) })
    .sort({ _ts: 1 })
    .toArray();

const alarmsOf = (objectId: string): Promise<Document[]> =>
  database
    .db()
    .collection('alarms')
    .find({ object: new ObjectId(objectId) })
    .toArray();

const spansOf = (alarms: readonly Document[], name: string): Span[] =>
  alarms
    .filter(({ rule }) => String(rule) === ruleIds[name])
    .map(({ raised, cleared }): Span => [raised, cleared ?? null])
    // One may be cleared at the instant at which it is raised, and the next one begin with it.
    .sort((one, other) => one[0] - other[0] || (one[1] ?? Infinity) - (other[1] ?? Infinity));

/** What is to be raised for all objects, by rule; and what is. */
async function compareAlarms(): Promise<{ expected: unknown[]; raised: unknown[] }> {
  const expected: unknown[] = [];
  const raised: unknown[] = [];
  for (const objectId of ids) {
    const packets = await storedOf(objectId);
    const alarms = await alarmsOf(objectId);
    for (const [name, rule] of Object.entries(RULES)) {
      expected.push([objectId, name, naiveSpans(rule, packets)]);
      raised.push([objectId, name, spansOf(alarms, name)]);
    }
  }
  return { expected, raised };
}

/** Each command belongs to one alarm, and each alarm has those of its rule once. */
async function checkCommands(): Promise<void> {
  const commands = await database.db().collection('commands').find({}).toArray();
  const alarms = await database.db().collection('alarms').find({}).toArray();
  const done = alarms.flatMap(({ actions }) => actions as Document[]);
  expect(done.filter(({ error }) => error !== undefined)).toEqual([]);
  const sent = done.map(({ _id, command }) => `${_id} ${command}`).sort();
  expect(commands.map(({ _id, command }) => `${_id} ${command}`).sort()).toEqual(sent);
  for (const { actions } of alarms) {
    const names = (actions as Document[]).map(({ command }) => command);
    expect(new Set(names).size).toBe(names.length);
    expect(names.filter((name) => name !== 'stop')).toHaveLength(1);
  }
}

test(
  'raises, clears and commands exactly what follows from the packets while instances are killed',
  async () => {
    const devices = ids.map((objectId): Device => ({ objectId, clock: { ms: Date.now() - 200 * 86_400_000 } }));
    for (let round = 0; round < ROUNDS; round++) {
      const running = startDevices(devices);
      await running.more();
      for (const instance of instances) {
        await instance.kill();
        await endPartitionLeases(database.db());
        await running.more();
        await instance.start();
        await running.more();
      }
      await running.stop();
      // Whether a round ends with something pending is not left to chance: each object is cool for so long that all ends.
      for (const device of devices) {
        for (let index = 0; index < 3; index++) {
          device.clock.ms += 60 * STEP_MS;
          await send(device, { time: device.clock.ms, t: 0, u: 0 });
        }
      }
      let compared = await compareAlarms();
      const isDone = async (): Promise<boolean> => {
        compared = await compareAlarms();
        return JSON.stringify(compared.raised) === JSON.stringify(compared.expected);
      };
      // What differs is shown, whether it comes too late or not at all.
      await until(isDone, 'all alarms', 60_000).catch(() => undefined);
      expect(compared.raised).toEqual(compared.expected);
      expect(JSON.stringify(compared.expected)).toMatch(/\[\d+,\d+\],\[\d+,\d+\]/);
      await checkCommands();
    }
  },
  300_000 * ROUNDS,
);
