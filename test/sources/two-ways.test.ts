/** Commands to a device that is connected over MQTT and has sent through a source as well: they go one of the two ways. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { useCommandPeer } from '../support/command-peer.js';
import { useService } from '../support/fixture.js';
import { AUTH, connectDevice } from '../support/mqtt-device.js';
import { useSources } from '../support/sources.js';
import { until } from '../support/until.js';

const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.0/8' } });
const endings: (() => unknown)[] = [];
const { peer, connect, command, read } = useCommandPeer(service, useSources(service));
/** The names of commands, in the order in which the device got them, and the system of the source took them. */
let byDevice: string[] = [];
const bySource = () => peer.got.flatMap(({ body, status }) => (status === 200 ? [body.type] : []));

beforeEach(() => {
  byDevice = [];
});
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

/** The id of an object whose commands can go through a source. */
const create = async (): Promise<string> => (await connect('traccar', { object: { config: { auth: AUTH } } })).id;

async function listen(id: string): Promise<void> {
  const client = await connectDevice(service.service.mqttUrl as string, id);
  endings.push(() => client.end(true));
  client.on('message', (topic) => byDevice.push(topic.split('/').at(-1) as string));
  await client.subscribeAsync('base/commands/#', { qos: 1 });
}

const isUnderWay = async (commandId: string): Promise<boolean> => (await read(commandId)).status !== 'queued';

test('sends each command one way, while both are open', async () => {
  const id = await create();
  await listen(id);
  const names = Array.from({ length: 60 }, (_, at) => `c${at}`);
  const ids: string[] = [];
  for (const name of names) ids.push(await command(id, name));
  for (const one of ids) await until(() => isUnderWay(one), 'the command to be under way');
  await until(() => bySource().length + byDevice.length >= names.length, 'all commands');
  expect([...bySource(), ...byDevice].sort()).toEqual([...names].sort());
});

test('does not send over MQTT what the source has passed on', async () => {
  const id = await create();
  const first = await command(id, 'first');
  await until(() => isUnderWay(first), 'the command to be under way');
  // The system takes nothing more: the next one reaches the device, and so would the first.
  peer.status = () => 503;
  await listen(id);
  await command(id, 'second');
  await until(() => byDevice.length > 0, 'a command over MQTT');
  expect([bySource(), byDevice]).toEqual([['first'], ['second']]);
});

test('sends over MQTT what waits for a source that is gone', async () => {
  const id = await create();
  peer.status = () => 503;
  await command(id, 'waits');
  const sources = (await service.admin('GET', 'sources')).body as { _id: string }[];
  for (const { _id } of sources) expect((await service.admin('DELETE', `sources/${_id}`)).status).toBe(200);
  await listen(id);
  await until(() => byDevice.length > 0, 'the command over MQTT');
  expect([bySource(), byDevice]).toEqual([[], ['waits']]);
});
