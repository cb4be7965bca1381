/** Many devices that send now and then: how many commands the database gets to find those that became silent. */
import { afterEach, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { startTestService, type TestService, testUri } from '../support/fixture.js';
import { countCommands, storeFleet, storePackets } from '../support/fleet.js';
import { isSoak } from '../support/runs.js';
import { until } from '../support/until.js';

const DEVICES = isSoak ? 100_000 : 1_000;
const SILENT = isSoak ? 5_000 : 1_000;
const TIMEOUT_MS = 300_000;

let service: TestService | null = null;
afterEach(() => service?.stop());

/** Fills a database, and returns its address; no service runs on it. */
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

/** Starts the service, and counts the commands of the database until so many devices are offline. */
async function startUntilSilent(uri: string, silent: number) {
  const client = await new MongoClient(uri).connect();
  const packets = client.db().collection('packets');
  const before = await countCommands(client.db());
  service = await startTestService({}, uri);
  const areOffline = async (): Promise<boolean> => (await packets.countDocuments({ online: false })) >= silent;
  await until(areOffline, 'packets that say that devices are offline', TIMEOUT_MS, 200);
  const commands = (await countCommands(client.db())) - before;
  const objects = await packets.distinct('_oid', { online: false });
  const offline = await packets.countDocuments({ online: false });
  await client.close();
  return { commands, offline, objects: objects.length };
}

test(
  'finds one silent device among many with few commands',
  async () => {
    const uri = await storeSilent(DEVICES, (nth) => ({ offlineAfter: nth === DEVICES - 1 ? '1s' : '1 day' }));
    const { commands, offline } = await startUntilSilent(uri, 1);
    expect(offline).toBe(1);
    expect(commands).toBeLessThan(DEVICES / 2);
  },
  TIMEOUT_MS,
);

test(
  'stores that many devices became silent at the same time with few commands, once for each',
  async () => {
    const uri = await storeSilent(SILENT, () => ({ offlineAfter: '1s' }));
    const { commands, offline, objects } = await startUntilSilent(uri, SILENT);
    expect([offline, objects]).toEqual([SILENT, SILENT]);
    expect(commands).toBeLessThan(SILENT / 2);
  },
  TIMEOUT_MS,
);
