/** Messages that cannot be stored: the service acknowledges them and records them in the audit, and stores the next ones. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { type Document, MongoClient } from 'mongodb';
import type { MqttClient } from 'mqtt';
import { LIMITS } from '../../src/core/limits.js';
import { jsonText } from '../support/any-json.js';
import { startTestService, type TestService, testUri } from '../support/fixture.js';
import { type Fate, type Line, startLine } from '../support/lossy-connection.js';
import { type BrokerClient, startTestBroker, type TestBroker } from '../support/mqtt-broker.js';
import { connectDevice, createObject } from '../support/mqtt-device.js';
import { fc, runsOf } from '../support/runs.js';
import { until } from '../support/until.js';

const REFUSED: Document = { ok: 0, code: 2, codeName: 'BadValue', errmsg: 'it has a bad value' };
const AWAY: Document = { ok: 0, code: 11_600, codeName: 'InterruptedAtShutdown', errmsg: 'it shuts down' };
const POISON = Buffer.from('a poisoned text');
const SENT_MS = 1_700_000_000_000;

// Notices are stored at once.
Object.assign(LIMITS, { auditDelayMs: 1 });

let broker: TestBroker;
let line: Line;
let service: TestService;
/** The reply of the database to commands that contain the poison; null for its own reply. */
let reply: Document | null = null;
let poisoned = 0;

beforeAll(async () => {
  broker = await startTestBroker();
  const decide = (question: Buffer): Fate => {
    if (reply === null || !question.includes(POISON)) return 'passes';
    poisoned++;
    return reply;
  };
  let through = '';
  line = await startLine(testUri(), decide, (uri) => {
    through = uri;
    return new MongoClient(uri);
  });
  service = await startTestService({ env: { MQTT_URL: broker.url, OPS_PORT: '0' } }, through);
  await until(() => broker.clients().length === LIMITS.brokerConnections, 'all connections of the service');
});

afterAll(async () => {
  await service?.stop();
  await line?.stop();
  broker?.stop();
});

const devices: MqttClient[] = [];
beforeEach(() => {
  reply = null;
  poisoned = 0;
});
afterEach(() => {
  for (const device of devices.splice(0)) device.end(true);
});

const clientAt = (at: number): BrokerClient => broker.clients()[at] as BrokerClient;
const packetsOf = async (id: string): Promise<Record<string, unknown>[]> =>
  (await service.admin('GET', `objects/${id}/packets`)).body;
const valuesOf = async (id: string): Promise<unknown[]> => (await packetsOf(id)).flatMap(({ n }) => n ?? []);

/** Creates a model whose parameters have types, and an object of it; returns the object's `_id`. */
async function createTyped(id: string): Promise<string> {
  const argument = (name: string, dataType: string, reference = '') => ({
    id: name,
    name,
    type: 'argument',
    dataType,
    reference,
  });
  const children = [
    argument('on', 'boolean'),
    argument('speed', 'number'),
    argument('text', 'string'),
    argument('all', 'object'),
    argument('switch', 'boolean', 'raw/values#a.b'),
    argument('load', 'number', 'raw/values#a.c'),
  ];
  const { body } = await service.admin('POST', 'models', { name: id, data: { children } });
  return createObject(service.admin, id, { model: body._id });
}

const noticesOf = async (objectId: string): Promise<Document[]> =>
  (await service.admin('GET', `audit?where.action=${encodeURIComponent('message refused')}`)).body.filter(
    ({ entity }: Document) => entity === objectId,
  );

/** Transports of a device; the function sends a message and resolves when it was acknowledged. */
const WAYS: [way: string, send: (id: string) => Promise<(topic: string, payload: string) => Promise<void>>][] = [
  [
    'behind a broker',
    async (id) => async (topic, payload) => {
      const client = clientAt(3);
      const messageId = client.send(`objects/${id}/${topic}`, payload);
      await until(() => client.acknowledged.includes(messageId), `acknowledgement of ${payload.slice(0, 80)}`);
    },
  ],
  [
    'on a connection of its own',
    async (id) => {
      const device = await connectDevice(service.service.mqttUrl as string, id);
      devices.push(device);
      return async (topic, payload) => void (await device.publishAsync(topic, payload, { qos: 1 }));
    },
  ],
];

let count = 0;
describe.each(WAYS)('%s', (_, connect) => {
  test.each([
    ['base/state/on', '{"toString":1}'],
    ['base/state/on', '{"a":{"valueOf":1,"toString":2}}'],
    ['base/state/on', '[{"toString":1}]'],
    ['base/state/speed', '{"toString":1,"valueOf":1}'],
    ['base/state', '{"on":{"toString":1}}'],
    ['raw/values', '{"a":{"b":{"toString":1},"c":{"valueOf":1}}}'],
    ['base/state', '{"a":{"_bsontype":1}}'],
    ['base/state/all', '{"_bsontype":"ObjectId"}'],
    ['base/state/constructor', '1'],
    ['base/state/__proto__', '{"a":1}'],
    ['base/commands/x/result', '{"status":{"toString":1}}'],
    ['base/commands/507f1f77bcf86cd799439011/result', '{"status":"done","result":{"_bsontype":1}}'],
  ])('acknowledges and records %s %s, and stores the next message', async (topic, payload) => {
    const id = `refused-${++count}`;
    const objectId = await createTyped(id);
    const send = await connect(id);
    await send(topic, payload);
    await send('base/state', '{"n":1}');
    expect(await valuesOf(id)).toEqual([1]);
    await until(async () => (await noticesOf(objectId)).length === 1, 'the notice of the refusal');
    expect((await noticesOf(objectId))[0]).toMatchObject({
      path: topic,
      method: 'PUBLISH',
      fields: [expect.any(String)],
    });
  });

  test('stores the good packets of an array, and tells at the object and in the audit which were refused, and why', async () => {
    const id = `partly-${++count}`;
    const objectId = await createTyped(id);
    const send = await connect(id);
    const time = Date.now();
    const items = [
      { time, n: 1 },
      { time: time + 1, speed: 'fast. very fast' },
      { n: 2 },
      { time: '2026-11-23T25:00:00.5Z', n: 9 },
      { a: 'x'.repeat(20), 'b.$c': { d: { $e: 1 } } },
      { time: time + 2, n: 3 },
    ];
    await send('base/state', JSON.stringify(items));
    expect((await valuesOf(id)).toSorted()).toEqual([1, 2, 3]);
    const reasons = [
      [1, "speed: expected number, as the object's model declares it"],
      [3, 'time: expected a time, such as 1795500000000 in ms, 1795500000 in s, or "2026-11-24T06:00:00Z"'],
      [4, expect.stringContaining('$')],
    ];
    const { body } = await service.admin('GET', `objects/${id}/refused`);
    expect(body).toEqual(
      reasons.map(([index, reason]) => ({ time: expect.any(Number), via: 'mqtt', topic: 'base/state', index, reason })),
    );
    await until(async () => (await noticesOf(objectId)).length === 1, 'the notice of the refusal');
    expect((await noticesOf(objectId))[0]?.fields).toEqual(
      body.map(({ index, reason }: { index: number; reason: string }) => `[${index}]: ${reason}`),
    );
  });

  test('tells at the object of every refused message, and in the audit of one a minute', async () => {
    const id = `often-${++count}`;
    const objectId = await createTyped(id);
    const send = await connect(id);
    await send('base/state', 'no JSON');
    await send('base/state/speed', 'fast');
    await send('elsewhere/x', '1');
    await send('base/state', '[]');
    const { body } = await service.admin('GET', `objects/${id}/refused`);
    expect(body.map(({ topic, index, reason }: Document) => [topic, index, reason])).toEqual([
      ['base/state', null, 'the payload is not valid JSON'],
      ['base/state/speed', null, expect.stringContaining('speed: expected number')],
      ['elsewhere/x', null, 'the topic is not a topic of this device'],
    ]);
    await until(async () => (await noticesOf(objectId)).length === 1, 'the notice of the refusal');
    expect((await noticesOf(objectId))[0]?.fields).toEqual(['the payload is not valid JSON']);
  });

  test.each<[topic: string, payload: string, reason: string]>([
    [
      'base/state',
      JSON.stringify(Object.fromEntries(Array.from({ length: 512 }, (_, n) => [`p${n}`, n]))),
      'the body: more than 500 fields; the first one too many is "p500"',
    ],
    [
      'base/state',
      JSON.stringify({ all: Object.fromEntries(Array.from({ length: 512 }, (_, n) => [`p${n}`, n])) }),
      '"all": more than 500 fields; the first one too many is "p500"',
    ],
    ['base/state', '{"a":{"b":[1,1e999]}}', '"a.b[1]": the number is too large'],
    ['base/state', '{"speed":"5.5 km/h. Really."}', "speed: expected number, as the object's model declares it"],
    ['base/state/speed', 'quick. Really.', "speed: expected number, as the object's model declares it"],
    ['raw/values', '{"a": . }', 'switch: the payload is not valid JSON'],
  ])('names the field of %s %.60s and the whole reason', async (topic, payload, reason) => {
    const id = `named-${++count}`;
    const objectId = await createTyped(id);
    const send = await connect(id);
    await send(topic, payload);
    await until(async () => (await noticesOf(objectId)).length === 1, 'the notice of the refusal');
    expect((await noticesOf(objectId))[0]?.fields).toEqual([reason]);
  });

  test('tells only at the object, in their order, which packets it stored without some fields', async () => {
    const id = `partial-${++count}`;
    const objectId = await createTyped(id);
    const send = await connect(id);
    const refusedMessages = async () => {
      const metrics = await (await fetch(`${service.service.opsUrl}/metrics`)).text();
      return Number(/^vigil_messages_refused_total (\d+)/m.exec(metrics)?.[1]);
    };
    const before = await refusedMessages();
    await send('base/state', '{"n":1,"speed":"fast"}');
    await send('base/state', '[{"n":2,"time":1700000000},{"n":3,"time":1700000001,"on":"maybe","$x":1}]');
    const stored = 'the other fields are stored';
    const told = async () =>
      (await service.admin('GET', `objects/${id}/refused`)).body.map((one: Document) => [one.index, one.reason]);
    const incomplete = [
      [null, `speed: expected number, as the object's model declares it; ${stored}`],
      [1, expect.stringMatching(`^on: expected boolean.*; "\\$x": a field name .*; ${stored}$`)],
    ];
    expect(await told()).toEqual(incomplete);
    expect(await refusedMessages()).toBe(before);
    await send('base/state', '[{"n":4,"$x":1},{"speed":"fast"},{"n":5,"time":1700000002,"$x":1}]');
    expect((await valuesOf(id)).toSorted()).toEqual([1, 2, 3, 4, 5]);
    expect(await told()).toEqual([
      ...incomplete,
      [0, expect.stringMatching(stored)],
      [1, "speed: expected number, as the object's model declares it"],
      [2, expect.stringMatching(stored)],
    ]);
    expect(await refusedMessages()).toBe(before + 1);
    await until(async () => (await noticesOf(objectId)).length === 1, 'the notice of the refusal');
    expect((await noticesOf(objectId))[0]?.fields).toHaveLength(3);
  });

  test('bounds the reasons of packets with many faults, at the object and in the audit', async () => {
    const id = `faulty-${++count}`;
    const objectId = await createTyped(id);
    const send = await connect(id);
    const faults = Object.fromEntries(Array.from({ length: 400 }, (_, n) => [`$${n}`, 1]));
    await send('base/state', JSON.stringify([faults, faults]));
    await until(async () => (await noticesOf(objectId)).length === 1, 'the notice of the refusal');
    const { body } = await service.admin('GET', `objects/${id}/refused`);
    const told = body.map(({ index, reason }: Document) => `[${index}]: ${reason}`);
    expect(told).toHaveLength(2);
    for (const text of told) expect(text).toMatch(/^\[[01]\]: "\$0": .{1,480}; and 395 more$/);
    expect((await noticesOf(objectId))[0]?.fields).toEqual(told);
  });

  test('stores or refuses any JSON for any type, and stores the next message', async () => {
    const id = `any-${++count}`;
    const objectId = await createTyped(id);
    const send = await connect(id);
    const topics = [
      'base/state',
      'raw/values',
      ...['on', 'speed', 'text', 'all', 'else'].map((name) => `base/state/${name}`),
    ];
    let n = 0;
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...topics), jsonText, async (topic, payload) => {
        await send(topic, payload);
        await send('base/state', `{"n":${++n}}`);
        expect((await valuesOf(id)).at(-1)).toBe(n);
      }),
      { numRuns: runsOf(100) },
    );
    const ofIt = service.logLines.filter((text) => text.includes(objectId));
    expect(ofIt.filter((text) => text.includes('internal error'))).toEqual([]);
  });

  test('acknowledges and records a message that the database refuses, without a second attempt', async () => {
    const id = `poison-${++count}`;
    const objectId = await createTyped(id);
    const send = await connect(id);
    reply = REFUSED;
    await send('base/state', JSON.stringify({ time: SENT_MS, text: POISON.toString() }));
    await send('base/state', '{"n":1}');
    expect(await valuesOf(id)).toEqual([1]);
    expect(poisoned).toBe(1);
    await until(async () => (await noticesOf(objectId)).length === 1, 'the notice of the refusal');
    expect((await noticesOf(objectId))[0]?.fields).toEqual(['Internal Server Error']);
    const faults = service.logLines.filter((text) => text.includes(objectId) && text.includes('it has a bad value'));
    expect(faults).toHaveLength(1);
  });
});

test('stores a message of the broker after an outage of the database', async () => {
  const id = `away-${++count}`;
  await createTyped(id);
  const client = clientAt(5);
  reply = AWAY;
  const waiting = client.send(
    `objects/${id}/base/state`,
    JSON.stringify({ time: SENT_MS, n: 1, text: POISON.toString() }),
  );
  await until(() => poisoned > 1, 'a second attempt');
  expect(client.acknowledged).not.toContain(waiting);
  reply = null;
  await until(() => client.acknowledged.includes(waiting), 'the acknowledgement');
  expect(await valuesOf(id)).toEqual([1]);
});

test('stores the next messages of every broker connection after many that cannot be stored', async () => {
  const bad = `bad-${++count}`;
  const good = `good-${++count}`;
  await createTyped(bad);
  await createTyped(good);
  reply = REFUSED;
  for (const client of broker.clients()) {
    for (let nth = 0; nth < 5; nth++) {
      client.send(`objects/${bad}/base/state`, JSON.stringify({ time: nth + 1, text: POISON.toString() }));
      client.send(`objects/${bad}/base/state/on`, '{"toString":1}');
    }
  }
  const last = broker
    .clients()
    .map((client, n) => ({ client, id: client.send(`objects/${good}/base/state/n`, `${n}`) }));
  await until(
    () => last.every(({ client, id }) => client.acknowledged.includes(id)),
    'the last message of each connection',
  );
  expect((await valuesOf(good)).toSorted()).toEqual(broker.clients().map((_, n) => n));
});

test('sends waiting commands when a device publishes, by any broker connection', async () => {
  for (const [at, client] of broker.clients().entries()) {
    const id = `waits-${at}`;
    await createObject(service.admin, id);
    await service.admin('POST', `objects/${id}/commands/go`);
    const first = client.send(`objects/${id}/base/state`, '{"n":1}');
    const next = client.send(`objects/${id}/base/state`, '{"n":2}');
    await until(() => [first, next].every((messageId) => client.acknowledged.includes(messageId)), `client ${at}`);
    const commands = async () => (await service.admin('GET', `objects/${id}/commands`)).body;
    await until(async () => (await commands())[0].status === 'delivered', 'the delivery');
  }
});

test('refuses a message of the broker that is larger than a device may send', async () => {
  const id = `large-${++count}`;
  const objectId = await createTyped(id);
  const client = clientAt(1);
  const payload = JSON.stringify({ list: Array.from({ length: LIMITS.mqttPacketBytes }, () => 1) });
  const messageId = client.send(`objects/${id}/base/state`, payload);
  await until(() => client.acknowledged.includes(messageId), 'the acknowledgement');
  await until(async () => (await noticesOf(objectId)).length === 1, 'the notice of the refusal');
  expect((await noticesOf(objectId))[0]?.fields[0]).toContain(`${LIMITS.mqttPacketBytes} bytes`);
});
