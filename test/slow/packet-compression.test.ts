/** Packets are compressed although the instance that does it is killed or freezes at any step, or the primary steps down. */
import { afterEach, expect, test } from '@jest/globals';
import { MongoClient, type MongoServerError } from 'mongodb';
import { requestCompression } from '../../src/db/compression/state.js';
import { databaseOf } from '../../src/db/driver/client.js';
import { LIMITS } from '../../src/model/limits.js';
import { startTestService, type TestService } from '../support/fixture.js';
import { type Instance, startInstance } from '../support/instance.js';
import { type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import {
  COMPRESSED,
  createUncompressed,
  findCollections,
  findCompression,
  startTraffic,
  type Traffic,
  waitForStage,
} from '../support/uncompressed.js';
import { until } from '../support/until.js';

// The service of the test only takes the packets: the compression is the work of other processes.
Object.assign(LIMITS, { compressionCheckMs: 3_600_000, compressionIdleMs: 3_600_000 });

const HISTORY = 20_000;
const BLOCKED_MS = 4_000;
const ENTERED_MS = 120_000;
/** Longer than another instance needs to take over, on a busy machine too. */
const LATE_MS = 60_000;
const MAX_TIME_EXPIRED = 50;
const endings: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

interface Started {
  readonly set: ReplicaSet;
  readonly service: TestService;
  readonly traffic: Traffic;
  readonly start: () => Promise<Instance>;
}

async function start(members: number): Promise<Started> {
  const set = await startReplicaSet({ members });
  endings.push(() => set.stop());
  const uri = set.uri('vigil');
  const client = await new MongoClient(uri).connect();
  await createUncompressed(client.db());
  await client.close();
  const service = await startTestService({ env: { MQTT_PORT: '0' } }, uri);
  endings.push(() => service.stop());
  const traffic = await startTraffic(service, service.service.mqttUrl, HISTORY);
  endings.push(traffic.close);
  const startOther = async (): Promise<Instance> => {
    const instance = await startInstance(uri, { env: { LOG_LEVEL: 'info' } });
    endings.push(() => instance.stop());
    return instance;
  };
  return { set, service, traffic, start: startOther };
}

const request = ({ client }: TestService) => requestCompression(databaseOf(client));

/** Commands of this name and collection wait a while before they do anything. */
async function block(
  set: ReplicaSet,
  [command, collection]: readonly [string, string | null],
  { mode = { times: 1 }, ms = BLOCKED_MS }: { mode?: object; ms?: number } = {},
) {
  const primary = await set.primary();
  const where = collection === null ? {} : { namespace: `vigil.${collection}` };
  const data = { failCommands: [command], appName: 'vigil', ...where, blockConnection: true, blockTimeMS: ms };
  const { count } = await primary.command({ configureFailPoint: 'failCommand', mode, data });
  // Shorter than the time-out of the connection.
  const waitFor = { waitForFailPoint: 'failCommand', timesEntered: count + 1, maxTimeMS: 5_000 };
  const hasEntered = async (): Promise<boolean> => {
    try {
      await primary.command(waitFor);
      return true;
    } catch (error) {
      if ((error as MongoServerError).code === MAX_TIME_EXPIRED) return false;
      throw error;
    }
  };
  return {
    entered: () => until(hasEntered, `${command} to begin`, ENTERED_MS),
    end: () => primary.command({ configureFailPoint: 'failCommand', mode: 'off' }),
  };
}

async function expectDone({ service, traffic }: Started): Promise<void> {
  await waitForStage(service.client.db(), 'done');
  await traffic.stop();
  await traffic.expectKept();
  expect(await findCollections(service.client.db())).toEqual(COMPRESSED);
}

test('continues after kills while it copies, compares, refuses inserts, exchanges and finishes', async () => {
  const started = await start(1);
  const { set, service, traffic } = started;
  const db = service.client.db();
  // An instance looks for it when it starts, and rarely afterwards.
  await request(service);
  const instance = await started.start();
  const again = async (): Promise<void> => {
    await instance.kill();
    await instance.start();
  };
  await until(async () => ((await findCompression(db))?.copied ?? 0) > 0, 'the first packets to be copied', 30_000);
  await again();
  await traffic.removeSome();
  await waitForStage(db, 'comparing');
  const refusing = await block(set, ['collMod', 'packets']);
  await again();
  await traffic.removeSome();
  await refusing.entered();
  await refusing.end();
  await instance.kill();
  const exchanging = await block(set, ['renameCollection', null], { mode: { skip: 1 } });
  await instance.start();
  await exchanging.entered();
  expect((await findCollections(db)).validator).toBeDefined();
  await instance.kill();
  await exchanging.end();
  await traffic.removeSome();
  const accepting = await block(set, ['collMod', 'packets'], { mode: { skip: 1 } });
  await instance.start();
  await accepting.entered();
  expect((await findCollections(db)).validator).toBeDefined();
  await instance.kill();
  await accepting.end();
  await traffic.removeSome();
  await instance.start();
  await expectDone(started);
}, 400_000);

test('keeps every packet when an instance freezes before the exchange until another one has taken over', async () => {
  const started = await start(1);
  const { set, service } = started;
  await request(service);
  const first = await started.start();
  await waitForStage(service.client.db(), 'comparing');
  const exchanging = await block(set, ['renameCollection', null], { ms: LATE_MS });
  await exchanging.entered();
  await first.freeze();
  // The fail point is over by itself: to end it would wait for the late exchange.
  await started.start();
  await waitForStage(service.client.db(), 'done');
  const exchanges = { currentOp: 1, 'command.renameCollection': { $exists: true } };
  const late = async () => (await (await set.primary()).command(exchanges)).inprog.length;
  expect(await late()).toBe(1);
  await until(async () => (await late()) === 0, 'the late exchange to be over', 90_000);
  first.thaw();
  await expectDone(started);
}, 300_000);

test('keeps every packet when the primary steps down during the exchange', async () => {
  const started = await start(3);
  const { set, service } = started;
  await request(service);
  await started.start();
  await waitForStage(service.client.db(), 'comparing');
  const exchanging = await block(set, ['renameCollection', null]);
  await exchanging.entered();
  const primary = await set.primary();
  await primary.stepDown();
  await expectDone(started);
}, 300_000);
