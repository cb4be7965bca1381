/** Commands to a device that is connected over MQTT and has sent through a source as well: they go one of the two ways. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { useService } from '../support/fixture.js';
import { AUTH, connectDevice } from '../support/mqtt-device.js';
import { useSources } from '../support/sources.js';
import { until } from '../support/until.js';

const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.0/8' } });
const { createSource, createObject, send } = useSources(service);
const endings: (() => unknown)[] = [];
let peer: Server;
let peerUrl: string;
/** The names of commands, in the order in which the system of the source and the device got them. */
let bySource: string[] = [];
let byDevice: string[] = [];
let answer = (): number => 200;

beforeAll(async () => {
  peer = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk) => chunks.push(chunk));
    req.on('end', () => {
      const status = answer();
      if (status === 200) bySource.push(JSON.parse(Buffer.concat(chunks).toString()).type);
      res.writeHead(status).end('{}');
    });
  });
  await new Promise<void>((done) => peer.listen(0, '127.0.0.1', done));
  peerUrl = `http://127.0.0.1:${(peer.address() as AddressInfo).port}`;
});
afterAll(() => {
  peer.closeAllConnections();
  peer.close();
});
beforeEach(() => {
  bySource = [];
  byDevice = [];
  answer = () => 200;
});
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

/** An object whose commands can go through a source. */
async function create(): Promise<string> {
  const source = await createSource({ kind: 'traccar', commandUrl: peerUrl });
  const { id } = await createObject({ config: { auth: AUTH } });
  const position = { fixTime: '2026-11-24T06:00:00Z', latitude: 52.5, longitude: 13.4, attributes: {} };
  expect((await send(source, { position, device: { id: 17, uniqueId: id, name: id } })).status).toBe(200);
  return id;
}

async function listen(id: string): Promise<void> {
  const client = await connectDevice(service.service.mqttUrl as string, id);
  endings.push(() => client.end(true));
  client.on('message', (topic) => byDevice.push(topic.split('/').at(-1) as string));
  await client.subscribeAsync('base/commands/#', { qos: 1 });
}

async function command(id: string, name: string): Promise<string> {
  const { headers, text, status } = await service.admin('POST', `objects/${id}/commands/${name}`, {});
  if (status !== 200) throw new Error(text);
  return (headers.location as string).split('/').at(-1) as string;
}

const isUnderWay = async (commandId: string): Promise<boolean> =>
  (await service.admin('GET', `commands/${commandId}`)).body.status !== 'queued';

test('sends each command one way, while both are open', async () => {
  const id = await create();
  await listen(id);
  const names = Array.from({ length: 60 }, (_, at) => `c${at}`);
  const ids: string[] = [];
  for (const name of names) ids.push(await command(id, name));
  for (const one of ids) await until(() => isUnderWay(one), 'the command to be under way');
  await until(() => bySource.length + byDevice.length >= names.length, 'all commands');
  expect([...bySource, ...byDevice].sort()).toEqual([...names].sort());
});

test('does not send over MQTT what the source has passed on', async () => {
  const id = await create();
  const first = await command(id, 'first');
  await until(() => isUnderWay(first), 'the command to be under way');
  // The system takes nothing more: the next one reaches the device, and so would the first.
  answer = () => 503;
  await listen(id);
  await command(id, 'second');
  await until(() => byDevice.length > 0, 'a command over MQTT');
  expect([bySource, byDevice]).toEqual([['first'], ['second']]);
});

test('sends over MQTT what waits for a source that is gone', async () => {
  const id = await create();
  answer = () => 503;
  await command(id, 'waits');
  const sources = (await service.admin('GET', 'sources')).body as { _id: string }[];
  for (const { _id } of sources) expect((await service.admin('DELETE', `sources/${_id}`)).status).toBe(200);
  await listen(id);
  await until(() => byDevice.length > 0, 'the command over MQTT');
  expect([bySource, byDevice]).toEqual([[], ['waits']]);
});
