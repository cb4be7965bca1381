/** Leases for work of one instance at a time: an instance that cannot renew its lease gives it up before another one may have it. */
import { expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { clock, replaceClock } from '../../src/platform/clock.js';
import { databaseOf } from '../../src/platform/mongo/driver/client.js';
import { acquireLease } from '../../src/platform/mongo/driver/lease.js';
import { openLine } from '../support/cuttable-connection.js';
import { testUri } from '../support/fixture.js';
import { until } from '../support/until.js';

const LEASE_MS = 60_000;

test('counts a lease from when it was asked for, although the process stood still until the answer', async () => {
  const line = await openLine(testUri());
  const client = await new MongoClient(line.uri, { monitorCommands: true }).connect();
  const awake = clock;
  let stillMs = 0;
  let renew = (): void => undefined;
  const restore = replaceClock({
    ...awake,
    steadyMs: () => awake.steadyMs() + stillMs,
    setInterval(run, ms) {
      renew = run;
      return awake.setInterval(() => undefined, ms);
    },
  });
  try {
    client.on('commandSucceeded', ({ commandName }) => {
      if (commandName === 'update') stillMs += LEASE_MS;
    });
    const lease = await acquireLease(databaseOf(client), 'test', LEASE_MS);
    expect(lease?.lost.aborted).toBe(false);
    await client.db().dropDatabase();
    await line.cut();
    renew();
    // Otherwise the driver would look for the database for half a minute.
    await client.close();
    await until(() => lease?.lost.aborted, 'the lease to be given up');
  } finally {
    restore();
    await client.close();
    await line.cut();
  }
});
