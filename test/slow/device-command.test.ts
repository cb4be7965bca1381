/** `vigil device` as a process of its own: replays recordings, simulates a vehicle, and carries out commands. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openLine } from '../support/cuttable-connection.js';
import { ADMIN, useService } from '../support/fixture.js';
import { type Program, startProgram, waitForOutput } from '../support/program.js';
import { until } from '../support/until.js';

const WAIT_MS = 60_000;
const ROWS = 250;
/** A device that keeps the pace of a trip sends so many rows at once, and the others after a break. */
const ROWS_AT_ONCE = 20;
const FIRST_MS = 1_748_764_800_000;

const service = useService();
let folder: string;
let file: string;
/** The same rows as `file`, with a break among them: the number of seconds is in its name. */
const tripWithBreak = (seconds: number): Promise<string> =>
  writeTrip(`break-${seconds}.csv`, (at) => FIRST_MS + at + (at < ROWS_AT_ONCE ? 0 : seconds * 1_000));

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'vigil-device-'));
  file = await writeTrip('trip.csv', (at) => FIRST_MS + at * 1_000);
});
afterAll(() => rm(folder, { recursive: true }));

async function writeTrip(name: string, timeOf: (at: number) => number): Promise<string> {
  const path = join(folder, name);
  const rows = Array.from({ length: ROWS }, (_, at) => `${timeOf(at)},${at}`);
  await writeFile(path, `time,n\n${rows.join('\n')}\n`);
  return path;
}

async function start(args: readonly string[], url = service.url): Promise<Program> {
  const token = await service.tokenOf(ADMIN.login, ADMIN.password);
  const env = { PATH: process.env.PATH, VIGIL_URL: url, VIGIL_TOKEN: token };
  return startProgram(['dist/src/cli/main.js', 'device', ...args], env);
}

async function storedNumbers(object: string): Promise<number[]> {
  const { body } = await service.admin('GET', `objects/${object}/packets?to=2025-12-31`);
  return Array.isArray(body) ? body.map(({ n }: { n: number }) => n) : [];
}

const allNumbers = Array.from({ length: ROWS }, (_, at) => at);
const overMqtt = (): string[] => ['--mqtt', service.service.mqttUrl as string];

test.each([
  ['HTTP', () => []],
  ['MQTT', overMqtt],
])('stores a recording whole and in order over %s, and once when it is sent again', async (name, transport) => {
  const object = `tape-${name}`;
  for (let round = 0; round < 2; round++) {
    const { ended, output } = await start([object, '--file', file, '--speed', 'max', ...transport()]);
    expect({ code: await ended, said: output() }).toEqual({ code: 0, said: expect.stringContaining('packets/s') });
  }
  expect(await storedNumbers(object)).toEqual(allNumbers);
});

test('says which packets of a recording are not stored, or without some fields', async () => {
  const faulty = join(folder, 'faulty.csv');
  await writeFile(faulty, `time,n,$x\n${FIRST_MS},1,\n${FIRST_MS + 1_000},2,5\n${FIRST_MS + 2_000},,5\n`);
  const device = await start(['faulty', '--file', faulty, '--speed', 'max']);
  expect(await device.ended).toBe(0);
  expect(device.output()).toContain('Packet 2 is stored without some fields: "$x": a field name');
  expect(device.output()).toContain('Packet 3 is not stored: "$x": a field name');
  expect(await storedNumbers('faulty')).toEqual([1, 2]);
});

test('continues an interrupted recording', async () => {
  const trip = await tripWithBreak(3_600);
  const device = await start(['interrupted', '--file', trip, '--speed', '1', '--batch', '10']);
  await until(async () => (await storedNumbers('interrupted')).length > 10, 'the first packets', WAIT_MS);
  expect(await device.end('SIGINT')).toBe(130);
  expect(device.output()).toContain('The same command continues from there.');
  const again = await start(['interrupted', '--file', trip, '--speed', 'max', '--batch', '10']);
  expect(await again.ended).toBe(0);
  expect(again.output()).toMatch(/\d+ of 250 packets are stored already/);
  expect(await storedNumbers('interrupted')).toEqual(allNumbers);
});

test('continues after an outage, and loses nothing', async () => {
  const line = await openLine(service.url);
  // Long enough that the connection is cut before the device goes on.
  const device = await start(['cut-off', '--file', await tripWithBreak(15), '--speed', '1'], line.uri);
  await until(async () => (await storedNumbers('cut-off')).length > 0, 'the first packets', WAIT_MS);
  await line.cut();
  await waitForOutput(device, /(trying again)/, WAIT_MS);
  await line.mend();
  expect(await device.ended).toBe(0);
  await line.cut();
  expect(await storedNumbers('cut-off')).toEqual(allNumbers);
});

test('carries out commands over MQTT and answers them, until it is stopped', async () => {
  const device = await start(['car', ...overMqtt()]);
  await until(async () => (await service.admin('GET', 'objects/car/packets')).body?.length > 1, 'packets', WAIT_MS);
  await service.admin('POST', 'objects/car/commands/honk', { seconds: 2 });
  const statusOf = async () => (await service.admin('GET', 'commands')).body[0]?.status;
  await until(async () => (await statusOf()) === 'done', 'the command to be done', WAIT_MS);
  expect(await device.end('SIGINT')).toBe(0);
  expect(device.output()).toContain('Command honk {"seconds":2}: done');
});
