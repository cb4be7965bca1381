/** Devices that only send now and then, in great number. SILENT_DEVICES=100000 for more than a few. */
import { afterEach, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { startTestService, type TestService, testUri } from '../support/fixture.js';
import { countCommands, storeFleet, storePackets } from '../support/fleet.js';
import { until } from '../support/until.js';

const DEVICES = Number(process.env.SILENT_DEVICES ?? 3_000);
const WAIT_MS = 240_000;

let service: TestService | null = null;
afterEach(() => service?.stop());

/** The database of a service that was stopped, with so many devices that only send now and then. */
async function storeSilent(devices: number, configOf: (nth: number) => object): Promise<string> {
  const uri = testUri();
  const { service: first, client } = await startTestService({}, uri);
  const packet = { speed: 1, time: Date.now() };
  const fleet = await storeFleet(client.db(), devices, (nth) => ({ config: configOf(nth) }));
  await storePackets(client.db(), fleet, () => packet);
  await first.stop();
  await client.close();
  return uri;
}

/** Starts the service, and gives what it asked the database until so many devices are known to be silent. */
async function startUntilSilent(uri: string, silent: number) {
  const client = await new MongoClient(uri).connect();
  const packets = client.db().collection('packets');
  const before = await countCommands(client.db());
  const startMs = performance.now();
  service = await startTestService({}, uri);
  const readyMs = Math.round(performance.now() - startMs);
  const areTold = async (): Promise<boolean> => (await packets.countDocuments({ online: false })) >= silent;
  await until(areTold, 'all are told to be silent', WAIT_MS, 200);
  const toldMs = Math.round(performance.now() - startMs) - readyMs;
  const commands = (await countCommands(client.db())) - before;
  const of = await packets.distinct('_oid', { online: false });
  const told = await packets.countDocuments({ online: false });
  await client.close();
  if (DEVICES > 3_000) console.log({ devices: DEVICES, silent, commands, readyMs, toldMs });
  return { commands, told, of: of.length };
}

test('asks few questions to know who is silent, however many devices may be', async () => {
  const uri = await storeSilent(DEVICES, (nth) => ({ offlineAfter: nth === DEVICES - 1 ? '1s' : '1 day' }));
  const { commands, told } = await startUntilSilent(uri, 1);
  expect(told).toBe(1);
  expect(commands).toBeLessThan(DEVICES / 2);
}, 300_000);

test('stores with few commands that many devices fell silent together, each once', async () => {
  const silent = Math.min(DEVICES, 5_000);
  const uri = await storeSilent(silent, () => ({ offlineAfter: '1s' }));
  const { commands, told, of } = await startUntilSilent(uri, silent);
  expect([told, of]).toEqual([silent, silent]);
  expect(commands).toBeLessThan(silent / 2);
}, 300_000);
