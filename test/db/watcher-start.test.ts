/** The start of the watcher while the database is out of reach. */
import { afterEach, expect, test } from '@jest/globals';
import type { Change } from '../../src/core/change.js';
import { LIMITS } from '../../src/core/limits.js';
import { startWatcher, type Watcher } from '../../src/platform/mongo/changes/watcher.js';
import { createWatcherClient } from '../../src/platform/mongo/driver/client.js';
import { connectDatabase } from '../../src/platform/mongo/schema/connect.js';
import { openLine } from '../support/cuttable-connection.js';
import { testUri } from '../support/fixture.js';
import { until } from '../support/until.js';

const endings: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

test('starts with the same client when the database answers after a start that failed', async () => {
  const uri = testUri();
  const line = await openLine(uri);
  const database = await connectDatabase(uri);
  endings.push(
    () => line.cut(),
    () => database.client.close(),
    () => database.db.dropDatabase(),
  );
  await line.cut();
  Object.assign(LIMITS, { databaseSelectionMs: 3_000 });
  const client = createWatcherClient(line.uri);
  endings.push(() => client.close());
  const changes: Change[] = [];
  const ignore = (): void => undefined;
  const onChange = (change: Change): void => void changes.push(change);
  const log = { warn: ignore, error: ignore };
  const tryToStart = () =>
    startWatcher({ client, onStart: ignore, onChange, onGap: ignore, onSkipped: ignore, log, now: Date.now });
  await expect(tryToStart()).rejects.toThrow('ECONNREFUSED');
  await line.mend();
  let started: Watcher | null = null;
  const isStarted = async () => {
    started = await tryToStart().catch(() => null);
    return started !== null;
  };
  await until(isStarted, 'it starts');
  endings.push(() => started?.stop());
  await database.db.collection('labels').insertOne({ _id: 'a' as never });
  await until(() => changes.length === 1, 'the change');
});
