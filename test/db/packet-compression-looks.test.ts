/** How often an instance looks whether packets are to be compressed. */
import { afterEach, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { startCompression } from '../../src/db/compression/compression.js';
import { requestCompression } from '../../src/db/compression/state.js';
import { databaseOf } from '../../src/db/driver/client.js';
import { LIMITS } from '../../src/model/limits.js';
import { testUri } from '../support/fixture.js';
import { createUncompressed, waitForStage } from '../support/uncompressed.js';
import { until } from '../support/until.js';

Object.assign(LIMITS, { compressionCheckMs: 1, compressionIdleMs: 3_600_000 });

const endings: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

/** A job with a client of its own, and how often it has looked. */
async function start(uri: string) {
  const client = await new MongoClient(uri, { monitorCommands: true }).connect();
  const looks = { count: 0 };
  client.on('commandSucceeded', ({ commandName }) => {
    if (commandName === 'listCollections') looks.count++;
  });
  const log = { info: () => undefined, warn: () => undefined };
  const job = startCompression({ database: databaseOf(client), log });
  endings.push(
    () => client.close(),
    () => job.stop(),
  );
  await until(() => looks.count > 0, 'the first look');
  return looks;
}

async function prepare() {
  const uri = testUri();
  const client = await new MongoClient(uri).connect();
  endings.push(
    () => client.close(),
    () => client.db().dropDatabase(),
  );
  await createUncompressed(client.db());
  return { uri, db: client.db(), database: databaseOf(client) };
}

test('looks once, and then rarely, where nobody ever asked for it', async () => {
  const { uri, db, database } = await prepare();
  const looks = await start(uri);
  await requestCompression(database);
  // Whoever starts looks at once.
  await start(uri);
  await waitForStage(db, 'done');
  expect(looks.count).toBe(1);
});

test('looks often after one that failed: a former owner may still refuse inserts', async () => {
  const { uri, db, database } = await prepare();
  await requestCompression(database);
  const installation = db.collection<{ _id: string }>('installation');
  await installation.updateOne({ _id: 'compression' }, { $set: { stage: 'failed' } });
  await start(uri);
  await requestCompression(database);
  await waitForStage(db, 'done');
});
