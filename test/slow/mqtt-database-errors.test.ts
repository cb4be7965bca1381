/** The database fails a device or a socket: the order of messages stays, and clients come back by themselves. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import mqtt from 'mqtt';
import type { Packet } from 'mqtt-packet';
import { ADMIN, startTestService, type TestService } from '../support/fixture.js';
import { AUTH, CONNECT, connectRaw, createObject, PUBLISH, type RawDevice } from '../support/mqtt-device.js';
import { openRaw } from '../support/raw-socket.js';
import { type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import { until } from '../support/until.js';

// Long enough for what is sent meanwhile to have come.
const BLOCKED_MS = 1_000;
const ENTERED_MS = 10_000;

let set: ReplicaSet;
let service: TestService;
let id = '';
let count = 0;
/** They stay until the end: that one is gone is stored two seconds later, and would be what fails in the next test. */
const devices: RawDevice[] = [];

beforeAll(async () => {
  set = await startReplicaSet({ members: 1 });
  service = await startTestService({}, set.uri('vigil'));
}, 120_000);

afterAll(async () => {
  for (const { socket } of devices) socket.destroy();
  await service?.stop();
  await set?.stop();
}, 60_000);

async function connect(): Promise<RawDevice> {
  const raw = await connectRaw(service.service.mqttUrl as string);
  devices.push(raw);
  raw.send(CONNECT(id, { clean: false }));
  await until(() => raw.received.length > 0, 'CONNACK');
  // That it is there is stored as well, a moment later: what fails next is to be a message.
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

/** The next such commands take a while and then fail; `end` makes them work again. Others of the service are not meant. */
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
  ['messages that may have come before', { dup: true }],
])('%s: none is stored after one that the database failed, until the device sends that one again', async (_, more) => {
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
  // The write that was given up may still have been done.
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

test('what comes after a message that the database refuses is stored, in order, also what is sent once', async () => {
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

test('a device that the database failed while it connected comes back by itself, as an ordinary client does', async () => {
  id = `failing-${++count}`;
  await createObject(service.admin, id);
  const { entered } = await fail(['find', 'objects'], { times: 1 }, UNKNOWN_ERROR);
  const device = mqtt.connect(service.service.mqttUrl as string, { ...AUTH, clientId: id, reconnectPeriod: 100 });
  const told: string[] = [];
  device.on('packetreceive', ({ cmd, ...rest }) => told.push(`${cmd} ${'returnCode' in rest && rest.returnCode}`));
  await entered();
  await until(() => device.connected, 'the device to be connected');
  expect(told).toEqual(['connack 0']);
  await device.endAsync();
});

test('closes a socket whose token the database could not find in time, without asking a second time', async () => {
  const headers = { Authorization: `Bearer ${await service.tokenOf(ADMIN.login, ADMIN.password)}` };
  await fail(['find', 'tokens'], { times: 1 }, TIME_EXPIRED);
  const first = await openRaw(service.url, headers);
  await until(() => first.closedWith !== null, 'the socket to be closed');
  expect(first.frames.filter((frame) => frame.startsWith('4'))).toEqual([]);
  const second = await openRaw(service.url, headers);
  await second.next('40');
  second.socket.terminate();
});
