/** The device for trials over MQTT, as a process of its own: a recording is stored, and commands are carried out. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { ADMIN, useService } from '../support/fixture.js';
import { type Program, startProgram } from '../support/program.js';
import { until } from '../support/until.js';

const service = useService();

async function start(...more: string[]): Promise<Program> {
  const token = await service.tokenOf(ADMIN.login, ADMIN.password);
  const address = ['--url', service.url, '--mqtt', service.service.mqttUrl as string];
  return startProgram(['dist/scripts/device.js', ...address, ...more], { ...process.env, VIGIL_TOKEN: token });
}

test('a recording is stored whole and in order, and once when it is sent again', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'vigil-device-'));
  const file = join(folder, 'trip.csv');
  const rows = Array.from({ length: 250 }, (_, at) => `${1_748_764_800_000 + at * 1_000},${at}`);
  await writeFile(file, `time,n\n${rows.join('\n')}\n`);
  for (let round = 0; round < 2; round++) {
    const { ended, output } = await start('--object', 'tape', '--file', file, '--speed', 'max');
    expect({ code: await ended, said: output() }).toEqual({ code: 0, said: expect.stringContaining('packets/s') });
  }
  await rm(folder, { recursive: true });
  const { body } = await service.admin('GET', 'objects/tape/packets?to=2025-12-31');
  expect(body.map(({ n }: { n: number }) => n)).toEqual(rows.map((_, at) => at));
}, 60_000);

test('commands are carried out and answered, until it is stopped', async () => {
  const device = await start('--object', 'car');
  await until(async () => (await service.admin('GET', 'objects/car/packets')).body?.length > 1, 'packets', 30_000);
  await service.admin('POST', 'objects/car/commands/honk', { seconds: 2 });
  await until(async () => (await service.admin('GET', 'commands')).body[0]?.status === 'done', 'it is done', 30_000);
  expect(await device.end('SIGINT')).toBe(0);
  expect(device.output()).toContain('Command honk {"seconds":2}: done');
}, 120_000);
