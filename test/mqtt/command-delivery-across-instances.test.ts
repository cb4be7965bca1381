/** Commands to devices that reconnect to one of two instances all the time. */
import { expect, test } from '@jest/globals';
import type { MqttClient } from 'mqtt';
import { LIMITS } from '../../src/core/limits.js';
import { startTestService, useService } from '../support/fixture.js';
import { connectDevice, createObject } from '../support/mqtt-device.js';
import { runsOf } from '../support/runs.js';
import { until } from '../support/until.js';

const COMMANDS = runsOf(1_000);
// Devices reconnect far more often than the service permits, and a command that was lost is sent again soon.
Object.assign(LIMITS, { mqttConnectsPerMinute: 100_000, commandConfirmMs: 2_000 });
const service = useService();

/** Connects a device and subscribes it to its commands, which it may receive together with the answer to the subscription. */
async function connect(
  id: string,
  url: string,
  onCommand: (client: MqttClient, _id: string) => void,
): Promise<MqttClient> {
  const client = await connectDevice(url, id);
  client.on('message', (_topic, payload) => onCommand(client, JSON.parse(payload.toString())._id));
  await client.subscribeAsync('base/commands/#', { qos: 1 });
  return client;
}

async function command(id: string, name: string): Promise<string> {
  const { headers, text, status } = await service.admin('POST', `objects/${id}/commands/${name}`, {});
  if (status !== 200) throw new Error(text);
  return (headers.location as string).split('/').at(-1) as string;
}

test(`executes ${COMMANDS} commands on devices that reconnect all the time, and marks each done`, async () => {
  const other = await startTestService({}, service.mongodbUri);
  const urls = [service.service.mqttUrl, other.service.mqttUrl] as string[];
  const ids = ['one', 'two', 'three'];
  for (const id of ids) await createObject(service.admin, id);
  const executed: string[] = [];
  let running = true;
  // A device that remembers the commands it executed, disconnects at any moment, and reconnects to either instance. What it
  // acknowledged is not sent to it again, so it keeps each result until that is acknowledged as well.
  const live = async (id: string, at: number): Promise<void> => {
    const done = new Set<string>();
    const untold = new Set<string>();
    const tell = (client: MqttClient, _id: string): void => {
      untold.add(_id);
      client.publish(`base/commands/${_id}/result`, '{"status":"done"}', { qos: 1 }, (error) => {
        if (!error) untold.delete(_id);
      });
    };
    const execute = (client: MqttClient, _id: string): void => {
      if (!done.has(_id)) executed.push(_id);
      done.add(_id);
      tell(client, _id);
    };
    for (let round = at; running; round++) {
      const client = await connect(id, urls[round % 2] as string, execute).catch(() => null);
      if (client !== null) for (const _id of untold) tell(client, _id);
      const endMs = performance.now() + 100 + ((round * 37) % 300);
      await until(() => !running || performance.now() > endMs, 'the end of a stay');
      client?.stream.destroy();
    }
  };
  const devices = ids.map(live);
  const sent: string[] = [];
  for (let at = 0; at < COMMANDS; at++) sent.push(await command(ids[(at * 7) % 3] as string, `c${at}`));
  const commands = service.client.db().collection('commands');
  const countOpen = () => commands.countDocuments({ command: /^c\d/, status: { $ne: 'done' } });
  await until(async () => (await countOpen()) === 0, 'all commands to be done', 180_000, 50);
  running = false;
  await Promise.all(devices);
  expect(executed.toSorted()).toEqual(sent.toSorted());
  for (const id of ids) {
    const { body } = await service.admin('GET', `commands?where.object=${id}`);
    expect(body.map(({ status }: { status: string }) => status)).toEqual(body.map(() => 'done'));
  }
  await other.service.stop();
  await other.client.close();
});
