/** Whether a device is there: `state.online` is right soon after it comes and goes, also with the instance that held it. */
import { afterEach, expect, test } from '@jest/globals';
import type { IClientOptions, MqttClient } from 'mqtt';
import { ADMIN, startSecond, useService } from '../support/fixture.js';
import { CONNECT, connectDevice, connectRaw, createObject } from '../support/mqtt-device.js';
import { type Program, SERVICE, startProgram, waitForOutput } from '../support/program.js';
import { until } from '../support/until.js';

const service = useService();
const endings: (() => unknown)[] = [];
let count = 0;

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

async function connect(id: string, options: IClientOptions = {}, url = service.service.mqttUrl): Promise<MqttClient> {
  const client = await connectDevice(url as string, id, options);
  endings.push(() => client.end(true));
  return client;
}

async function create(fields: object = {}): Promise<string> {
  const id = `there-${++count}`;
  await createObject(service.admin, id, fields);
  return id;
}

const onlineOf = async (id: string): Promise<unknown> =>
  (await service.admin('GET', `objects/${id}`)).body.state?.online;

/** `online` of every packet of the object, in order. */
async function onlinesOf(id: string): Promise<boolean[]> {
  const { body } = await service.admin('GET', `objects/${id}/packets`);
  return body.map(({ online }: { online: boolean }) => online);
}

const startOther = () => startSecond(service, endings);

test('it is online as soon as it is connected, and offline soon after it took its leave; listeners hear both', async () => {
  const id = await create();
  const listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
  endings.push(() => listener.close());
  const device = await connect(id);
  expect(await onlineOf(id)).toBe(true);
  await device.publishAsync('base/state', '{"speed":1}', { qos: 1 });
  await device.endAsync();
  await until(async () => (await onlineOf(id)) === false);
  expect(await onlinesOf(id)).toEqual([true, true, false]);
  await service.settled();
  const told = listener.take().filter(({ name, payload }) => name === 'object-packet' && payload.id === id);
  expect(told.map(({ payload }) => payload.online)).toEqual([true, true, false]);
});

test('a connection that breaks, and one whose device falls silent', async () => {
  const [id, silent] = [await create(), await create()];
  const device = await connect(id);
  const raw = await connectRaw(service.service.mqttUrl as string);
  endings.push(() => raw.socket.destroy());
  raw.send(CONNECT(silent, { keepalive: 1 }));
  await until(async () => (await onlineOf(silent)) === true);
  device.stream.destroy();
  await until(async () => (await onlineOf(id)) === false);
  await until(async () => (await onlineOf(silent)) === false);
});

test('a device that comes back at once was never gone', async () => {
  const id = await create();
  for (let at = 0; at < 5; at++) (await connect(id)).stream.destroy();
  const device = await connect(id);
  // Told of after the grace of every connection before it.
  const witness = await create();
  (await connect(witness)).stream.destroy();
  await until(async () => (await onlineOf(witness)) === false);
  await device.publishAsync('base/state', '{"speed":1}', { qos: 1 });
  expect(await onlinesOf(id)).toEqual([true, true]);
});

test('a device whose clock is ahead is offline all the same, and online again', async () => {
  const id = await create();
  const device = await connect(id);
  const time = Date.now() + 3_600_000;
  await device.publishAsync('base/state', JSON.stringify({ time }), { qos: 1 });
  await device.endAsync();
  await until(async () => (await onlineOf(id)) === false);
  await connect(id);
  expect(await onlineOf(id)).toBe(true);
});

test('the newer connection counts, on whichever instance it is', async () => {
  const id = await create();
  const other = await startOther();
  const first = await connect(id);
  const second = await connect(id, {}, other.service.mqttUrl);
  await until(() => !first.connected);
  const third = await connect(id);
  await until(() => !second.connected);
  await third.publishAsync('base/state', '{"speed":1}', { qos: 1 });
  const witness = await create();
  (await connect(witness, {}, other.service.mqttUrl)).stream.destroy();
  await until(async () => (await onlineOf(witness)) === false);
  expect(await onlinesOf(id)).toEqual([true, true]);
});

async function startChild(): Promise<{ program: Program; mqttUrl: string }> {
  const env = { ...process.env, PORT: '0', MONGODB_URI: service.mongodbUri, LOG_FORMAT: 'json', LOG_LEVEL: 'info' };
  const program = startProgram(SERVICE, { ...env, SECRET: 'test-secret-0123456789-abcdefghijklmnop' });
  endings.push(() => program.end('SIGKILL'));
  return { program, mqttUrl: await waitForOutput(program, /Devices\s+(\S+)/) };
}

test('an instance that is killed takes its devices with it: each is told once, by whichever other finds it', async () => {
  await startOther();
  await startOther();
  const { program, mqttUrl } = await startChild();
  const ids = [];
  for (let at = 0; at < 20; at++) ids.push(await create());
  const devices = await Promise.all(ids.map((id) => connect(id, {}, mqttUrl)));
  const [moved, ...lost] = ids as [string, ...string[]];
  await program.end('SIGKILL');
  const killedMs = performance.now();
  // One of them finds another instance.
  await until(() => !devices[0]?.connected);
  await connect(moved);
  await until(async () => (await Promise.all(lost.map(onlineOf))).every((online) => online === false), 'all', 20_000);
  expect(performance.now() - killedMs).toBeLessThan(20_000);
  for (const id of lost) expect(await onlinesOf(id)).toEqual([true, false]);
  expect(await onlinesOf(moved)).toEqual([true]);
}, 60_000);

test('an instance that was taken for gone, and was not, says so', async () => {
  const id = await create();
  const device = await connect(id);
  const records = service.client.db().collection('presence');
  const held = await records.findOne({}, { sort: { since: -1 } });
  // As another instance would that cannot see this one's signs of life.
  await records.updateOne({ _id: held?._id }, { $set: { ended: Date.now() } });
  await until(async () => (await records.findOne({ _id: held?._id }))?.ended === null);
  // Its end may have been told before, with those of other devices: then it is told that it is there.
  await until(async () => (await onlineOf(id)) === true);
  expect(device.connected).toBe(true);
});

test('a device that sends now and then is offline when it has been silent for as long as it says, once', async () => {
  await startOther();
  // Longer than a busy machine needs from a packet to the question after it.
  const id = await create({ config: { offlineAfter: '3s' } });
  await service.admin('POST', `objects/${id}/packets`, { speed: 1 });
  expect(await onlineOf(id)).toBe(true);
  await until(async () => (await onlineOf(id)) === false);
  await service.admin('POST', `objects/${id}/packets`, { speed: 2 });
  expect(await onlineOf(id)).toBe(true);
  await until(async () => (await onlineOf(id)) === false);
  expect(await onlinesOf(id)).toEqual([true, false, true, false]);
});

test('over MQTT: it may go, and is there until its time is over; while it is connected it may be silent', async () => {
  const id = await create({
    config: { auth: { username: 'truck', password: 'a key of the machine' }, offlineAfter: 2_500 },
  });
  const device = await connect(id);
  await device.publishAsync('base/state', '{"speed":1}', { qos: 1 });
  const witness = await create();
  (await connect(witness)).stream.destroy();
  await device.endAsync();
  await until(async () => (await onlineOf(witness)) === false);
  await until(async () => (await onlineOf(id)) === false);
  expect(await onlinesOf(id)).toEqual([true, true, false]);
});

test.each(['soon', -1, 0, true, []])('an offlineAfter that is none is a 400: %j', async (offlineAfter) => {
  const { status, body } = await service.admin('POST', 'objects', { id: 'x', name: 'x', config: { offlineAfter } });
  expect([status, body.helper.message]).toEqual([400, expect.stringContaining('config.offlineAfter')]);
});
