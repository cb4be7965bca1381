/** The clients of Mosquitto as devices, with each version of MQTT, and the bridge of Mosquitto with MQTT 5. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { useService } from '../support/fixture.js';
import { AUTH, createObject } from '../support/mqtt-device.js';
import { findFreePort } from '../support/ports.js';
import { until } from '../support/until.js';

const isThere = spawnSync('mosquitto_pub', ['--help']).error === undefined;
const describeThere = isThere ? describe : describe.skip;
if (!isThere) process.stderr.write('No mosquitto_pub on this machine: the tests of its clients are skipped\n');

const service = useService();
const children: ChildProcess[] = [];
let count = 0;

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

interface Ran {
  readonly child: ChildProcess;
  readonly output: () => string;
  readonly ended: Promise<number | null>;
}

function run(program: string, version: string, id: string, args: readonly string[]): Ran {
  const { hostname, port } = new URL(service.service.mqttUrl as string);
  const common = ['-h', hostname, '-p', port, '-i', id, '-u', AUTH.username, '-P', AUTH.password, '-V', version];
  const child = spawn(program, [...common, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
  children.push(child);
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (text += data));
  return { child, output: () => text, ended: once(child, 'close').then(([code]) => code) };
}

async function valuesOf(id: string): Promise<unknown[]> {
  const { body } = await service.admin('GET', `objects/${id}/packets`);
  return body.flatMap(({ n }: { n?: unknown }) => n ?? []);
}

async function create(): Promise<string> {
  const id = `mosquitto-${++count}`;
  await createObject(service.admin, id);
  return id;
}

describeThere.each(['mqttv31', 'mqttv311', 'mqttv5'])('mosquitto_pub and mosquitto_sub with %s', (version) => {
  test.each(['0', '1', '2'])('store messages with QoS %s', async (qos) => {
    const id = await create();
    const publishing = run('mosquitto_pub', version, id, ['-q', qos, '-t', 'base/state', '-l']);
    publishing.child.stdin?.end('{"n":1}\n{"n":2}\n');
    expect([await publishing.ended, publishing.output()]).toEqual([0, '']);
    await until(async () => (await valuesOf(id)).length === 2, 'both messages');
    expect(await valuesOf(id)).toEqual([1, 2]);
  });

  test('receive a command', async () => {
    const id = await create();
    const listening = run('mosquitto_sub', version, id, ['-q', '1', '-t', 'base/commands/#', '-C', '1', '-v']);
    await service.admin('POST', `objects/${id}/commands/stop`, {});
    expect(await listening.ended).toBe(0);
    expect(listening.output()).toMatch(/^base\/commands\/stop \{"_id":/);
  });

  test('are refused with a wrong password', async () => {
    const id = await create();
    const refused = run('mosquitto_pub', version, id, ['-P', 'wrong', '-t', 'base/state', '-m', '{}']);
    expect(await refused.ended).not.toBe(0);
    expect(refused.output()).toMatch(
      version === 'mqttv5' ? /not authorised|bad user name/i : /refused|not authorised/i,
    );
  });
});

describeThere('with MQTT 5', () => {
  test('mosquitto_pub shows why a message is refused', async () => {
    const id = await create();
    const refused = run('mosquitto_pub', 'mqttv5', id, ['-q', '1', '-t', 'base/state', '-m', '{', '-d']);
    await refused.ended;
    expect(refused.output()).toMatch(/RC:153/);
    expect(await valuesOf(id)).toEqual([]);
  });

  test('mosquitto_pub does not send what is larger than the service accepts', async () => {
    const id = await create();
    const large = run('mosquitto_pub', 'mqttv5', id, ['-q', '1', '-t', 'base/state', '-s']);
    large.child.stdin?.end('x'.repeat(LIMITS.mqttPacketBytes + 1));
    await large.ended;
    // Sent messages of that size would be among the refused ones.
    expect((await service.admin('GET', `objects/${id}/refused`)).body).toEqual([]);
  });

  test('mosquitto_sub shows the expiry and the response topic of a command', async () => {
    const id = await create();
    const format = ['-C', '1', '-F', '%E %R %D'];
    const listening = run('mosquitto_sub', 'mqttv5', id, ['-q', '1', '-t', 'base/commands/#', ...format]);
    const { headers } = await service.admin('POST', `objects/${id}/commands/stop?ttl=1min`, {});
    const commandId = (headers.location as string).split('/').at(-1) as string;
    expect(await listening.ended).toBe(0);
    expect(listening.output().trim()).toMatch(new RegExp(`^\\d+ base/commands/${commandId}/result ${commandId}$`));
  });

  const hasBroker = ['mosquitto', '/usr/sbin/mosquitto'].find((name) => spawnSync(name, ['-h']).error === undefined);
  (hasBroker === undefined ? test.skip : test)('a bridge of Mosquitto stores what its clients publish', async () => {
    const id = await create();
    const folder = await mkdtemp(join(tmpdir(), 'vigil-mosquitto-'));
    const { hostname, port } = new URL(service.service.mqttUrl as string);
    const own = await findFreePort();
    const lines = [
      `listener ${own} 127.0.0.1`,
      'allow_anonymous true',
      'connection vigil',
      `address ${hostname}:${port}`,
      `remote_clientid ${id}`,
      `remote_username ${AUTH.username}`,
      `remote_password ${AUTH.password}`,
      'bridge_protocol_version mqttv50',
      'notifications false',
      'topic base/state out 1',
    ];
    await writeFile(join(folder, 'mosquitto.conf'), `${lines.join('\n')}\n`);
    const broker = spawn(hasBroker as string, ['-c', join(folder, 'mosquitto.conf')], { stdio: 'ignore' });
    children.push(broker);
    await until(async () => {
      const sent = spawn('mosquitto_pub', ['-p', `${own}`, '-q', '1', '-t', 'base/state', '-m', '{"n":1}']);
      await once(sent, 'exit');
      return (await valuesOf(id)).length > 0;
    }, 'a message through the bridge');
    await rm(folder, { recursive: true, force: true });
  });
});
