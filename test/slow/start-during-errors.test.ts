/** Starts during which the database fails for a moment: the service waits until it answers, whichever command failed. */
import '../support/usual-limits.js';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { type Service, startService } from '../../src/app.js';
import { parseConfig } from '../../src/config.js';
import { TEST_SECRET } from '../support/callers.js';
import { ADMIN } from '../support/fixture.js';
import { type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import { until } from '../support/until.js';

const EXCEEDED_TIME_LIMIT = 262;
/** Of one command, also when the driver and the service have repeated it. */
const FAILURES = 3;
const SCHEMA_COMMANDS = ['create', 'createIndexes', 'collMod', 'listCollections', 'listIndexes'];
const READS = ['find', 'aggregate', 'getMore', 'buildInfo', 'ping'];
const WRITES = ['insert', 'update', 'delete', 'findAndModify', 'commitTransaction'];
const ADDRESS = { HOST: '127.0.0.1', PORT: '0', OPS_PORT: '0', MQTT_HOST: '127.0.0.1', MQTT_PORT: '0' };
const SETTINGS = { ...ADDRESS, STOP_DELAY: '0', SECRET: TEST_SECRET, LOG_LEVEL: 'silent' };

let set: ReplicaSet;
let client: MongoClient;

beforeAll(async () => {
  set = await startReplicaSet({ members: 1 });
  client = await new MongoClient(set.uri('vigil')).connect();
});
afterAll(async () => {
  await client?.close();
  await set?.stop();
});

/** Makes all commands of the service fail after so many, until `end`. */
async function failAfter(skip: number) {
  const admin = client.db('admin');
  const failCommands = [...SCHEMA_COMMANDS, ...READS, ...WRITES];
  const data = { failCommands, appName: 'vigil', errorCode: EXCEEDED_TIME_LIMIT };
  const { count } = await admin.command({ configureFailPoint: 'failCommand', mode: { skip }, data });
  return {
    async failures(): Promise<number> {
      const point = await admin.command({ getParameter: 1, 'failpoint.failCommand': 1 });
      return point['failpoint.failCommand'].timesEntered - count;
    },
    end: () => admin.command({ configureFailPoint: 'failCommand', mode: 'off' }),
  };
}

/** Starts and stops the service; returns whether commands failed before it was ready. */
async function startWithFailure(skip: number): Promise<boolean> {
  const point = await failAfter(skip);
  let service: Service | null = null;
  let failed: unknown = null;
  const note = (reason: unknown): void => {
    failed = reason;
  };
  const config = parseConfig({ ...SETTINGS, ADMIN_PASSWORD: ADMIN.password, MONGODB_URI: set.uri('vigil') });
  const starting = startService(config).then((started) => {
    service = started;
    void started.failed.then(note);
    return started;
  }, note);
  const isReady = async () => service !== null && (await fetch(`${service.opsUrl}/ready`)).ok;
  const isOver = async () => failed !== null || (await isReady());
  let failures = 0;
  await until(async () => {
    failures = await point.failures();
    return failures >= FAILURES || (await isOver());
  }, 'commands fail');
  await point.end();
  await until(isOver, 'it is ready');
  expect([skip, failed]).toEqual([skip, null]);
  await (await starting)?.stop();
  return failures > 0;
}

test('waits when the database fails during the first start', async () => {
  // Not after each of its commands: MongoDB keeps the files of dropped collections open for minutes.
  let skip = 0;
  for (; await startWithFailure(skip); skip += 9) await client.db().dropDatabase();
  expect(skip).toBeGreaterThan(100);
});

test('waits when the database fails after any command of a later start', async () => {
  let skip = 0;
  while (await startWithFailure(skip)) skip++;
  expect(skip).toBeGreaterThan(50);
});
