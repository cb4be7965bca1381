/** Errors of the database while a device or a socket uses it: messages keep their order, and clients reconnect. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import mqtt from 'mqtt';
import type { Packet } from 'mqtt-packet';
import { ADMIN, startTestService, type TestService } from '../support/fixture.js';
import { AUTH, CONNECT, connectRaw, createObject, PUBLISH, type RawDevice } from '../support/mqtt-device.js';
import { openRaw } from '../support/raw-socket.js';
import { type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import { until } from '../support/until.js';

/** The time before a command fails: the messages that a device sends meanwhile have to arrive within it. */
const BLOCKED_MS = 1_000;
const ENTERED_MS = 60_000;

let set: ReplicaSet;
let service: TestService;
let id = '';
let count = 0;
/** Connected until the end: the packet of a disconnection, written a while later, would fail in place of that of the next test. */
const devices: RawDevice[] = [];

beforeAll(async () => {
  set = await startReplicaSet({ members: 1 });
  service = await startTestService({}, set.uri('vigil'));
});

afterAll(async () => {
  for (const { socket } of devices) socket.destroy();
  await service?.stop();
  await set?.stop();
});

async function connect(): Promise<RawDevice> {
  const raw = await connectRaw(service.service.mqttUrl as string);
  devices.push(raw);
  raw.send(CONNECT(id, { clean: false, keepalive: 0 }));
  await until(() => raw.received.length > 0, 'CONNACK');
  // The packet of the connection is stored first: the next write is that of a message.
  const isOnline = async () => (await service.admin('GET', `objects/${id}`)).body.state?.online === true;
  await until(isOnline, 'the device to be online');
  return raw;
}

const messages = (more: object, ...ids: number[]): Packet[] =>
  ids.map((messageId) => PUBLISH('base/state', `{"n":${messageId}}`, { messageId, ...more }));

async function stored(): Promise<number[]> {
  const { body } = await service.admin('GET', `objects/${id}/packets`);
  return body.map(({ n }: { n?: number }) => n).filter((n?: number) => n !== undefined);
}

/** Makes the next commands of this kind of the service fail after a while; `end` makes them succeed again. */
async function fail(
  [command, collection]: [command: string, collection: string],
  mode: 'alwaysOn' | { times: number },
  errorCode: number,
) {
  const primary = await set.primary();
  const about = { failCommands: [command], appName: 'vigil', namespace: `vigil.${collection}` };
  const data = { ...about, blockConnection: true, blockTimeMS: BLOCKED_MS, errorCode };
  const { count: before } = await primary.command({ configureFailPoint: 'failCommand', mode, data });
  const waitFor = { waitForFailPoint: 'failCommand', timesEntered: before + 1, maxTimeMS: ENTERED_MS };
  return {
    entered: () => primary.command(waitFor),
    end: () => primary.command({ configureFailPoint: 'failCommand', mode: 'off' }),
  };
}

const TIME_EXPIRED = 50;
const UNKNOWN_ERROR = 8;

test.each([
  ['new messages', {}],
  ['repeated messages', { dup: true }],
])('stores %s after a failed one only when the device has sent that one again', async (_, more) => {
  id = `failing-${++count}`;
  await createObject(service.admin, id);
  const listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
  const first = await connect();
  const { entered, end } = await fail(['insert', 'packets'], 'alwaysOn', TIME_EXPIRED);
  first.send(...messages(more, 1));
  await entered();
  first.send(...messages(more, 2, 3));
  await first.closed;
  expect(first.received.filter(({ cmd }) => cmd === 'puback')).toEqual([]);
  await end();
  // The database may have completed the write after the service gave it up.
  expect([[], [1]]).toContainEqual(await stored());
  const second = await connect();
  second.send(...messages({ dup: true }, 1, 2, 3), ...messages({}, 4));
  await until(() => second.received.filter(({ cmd }) => cmd === 'puback').length === 4, 'every acknowledgement');
  expect(await stored()).toEqual([1, 2, 3, 4]);
  await service.settled();
  const received = listener.take().filter(({ name, payload }) => name === 'object-packet' && payload.id === id);
  expect(received.map(({ payload }) => payload.n).filter((n) => n !== undefined)).toEqual([1, 2, 3, 4]);
  listener.close();
});

test('stores the messages after one that the database refuses, in order, also one of QoS 0', async () => {
  id = `failing-${++count}`;
  await createObject(service.admin, id);
  const first = await connect();
  const { entered } = await fail(['insert', 'packets'], { times: 1 }, UNKNOWN_ERROR);
  first.send(...messages({}, 1));
  await entered();
  first.send(PUBLISH('base/state', '{"n":2}', { qos: 0, messageId: undefined }), ...messages({}, 3));
  await until(() => first.received.filter(({ cmd }) => cmd === 'puback').length === 2, 'every acknowledgement');
  expect(await stored()).toEqual([2, 3]);
  expect(first.isClosed()).toBe(false);
});

test('lets a device reconnect after the database failed its connection', async () => {
  id = `failing-${++count}`;
  await createObject(service.admin, id);
  const { entered } = await fail(['find', 'objects'], { times: 1 }, UNKNOWN_ERROR);
  const device = mqtt.connect(service.service.mqttUrl as string, { ...AUTH, clientId: id, reconnectPeriod: 100 });
  const answers: string[] = [];
  device.on('packetreceive', ({ cmd, ...rest }) => answers.push(`${cmd} ${'returnCode' in rest && rest.returnCode}`));
  await entered();
  await until(() => device.connected, 'the device to be connected');
  expect(answers).toEqual(['connack 0']);
  await device.endAsync();
});

test('closes a socket when the first query for its token times out', async () => {
  const headers = { Authorization: `Bearer ${await service.tokenOf(ADMIN.login, ADMIN.password)}` };
  await fail(['find', 'tokens'], { times: 1 }, TIME_EXPIRED);
  const first = await openRaw(service.url, headers);
  await until(() => first.closedWith !== null, 'the socket to be closed');
  expect(first.frames.filter((frame) => frame.startsWith('4'))).toEqual([]);
  const second = await openRaw(service.url, headers);
  await second.next('40');
  second.socket.terminate();
});
