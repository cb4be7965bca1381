/** Commands at random to devices that come and go, on two instances. */
import { expect, test } from '@jest/globals';
import type { MqttClient } from 'mqtt';
import { startTestService, useService } from '../support/fixture.js';
import { connectDevice, createObject } from '../support/mqtt-device.js';
import { until } from '../support/until.js';

const COMMANDS = 1_000;
const service = useService();

/** A device that listens. */
async function listen(id: string, url: string): Promise<MqttClient> {
  const client = await connectDevice(url, id);
  await client.subscribeAsync('base/commands/#', { qos: 1 });
  return client;
}

async function command(id: string, name: string): Promise<string> {
  const { headers, text, status } = await service.admin('POST', `objects/${id}/commands/${name}`, {});
  if (status !== 200) throw new Error(text);
  return (headers.location as string).split('/').at(-1) as string;
}

test(`${COMMANDS} at random to devices that come and go: each ends once, and no device carries one out twice`, async () => {
  const other = await startTestService({}, service.mongodbUri);
  const urls = [service.service.mqttUrl, other.service.mqttUrl] as string[];
  const ids = ['one', 'two', 'three'];
  for (const id of ids) await createObject(service.admin, id);
  const executed: string[] = [];
  let running = true;
  // A device that remembers what it did, goes at any moment, and comes back somewhere.
  const live = async (id: string, at: number): Promise<void> => {
    const done = new Set<string>();
    for (let round = at; running; round++) {
      const client = await listen(id, urls[round % 2] as string).catch(() => null);
      client?.on('message', (_topic, payload) => {
        const { _id } = JSON.parse(payload.toString());
        if (!done.has(_id)) executed.push(_id);
        done.add(_id);
        client.publish(`base/commands/${_id}/result`, '{"status":"done"}', { qos: 1 });
      });
      const until_ = round % 5 === 4 ? 12_000 : 100 + ((round * 37) % 300);
      const startMs = performance.now();
      await until(() => !running || performance.now() - startMs > until_, 'a while', 20_000);
      client?.stream.destroy();
    }
  };
  const devices = ids.map(live);
  const sent: string[] = [];
  for (let at = 0; at < COMMANDS; at++) sent.push(await command(ids[(at * 7) % 3] as string, `c${at}`));
  const openOnes = async () =>
    (await service.client
      .db()
      .collection('commands')
      .countDocuments({ command: /^c\d/, status: { $ne: 'done' } })) > 0;
  await until(async () => !(await openOnes()), 'all to be done', 90_000, 100);
  running = false;
  await Promise.all(devices);
  expect(executed.toSorted()).toEqual(sent.toSorted());
  // In order, for each device.
  for (const id of ids) {
    const { body } = await service.admin('GET', `commands?where.object=${id}`);
    expect(body.map(({ status }: { status: string }) => status)).toEqual(body.map(() => 'done'));
  }
  await other.service.stop();
  await other.client.close();
}, 180_000);
