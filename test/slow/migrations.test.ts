/** Migrations: each runs once, in order, however many instances start and however often one is killed. */
import { readdirSync } from 'node:fs';
import { afterEach, describe, expect, test } from '@jest/globals';
import { startService } from '../../src/app.js';
import { parseConfig } from '../../src/config.js';
import { toApiError } from '../../src/core/errors.js';
import type { Database } from '../../src/platform/mongo/driver/client.js';
import { acquireLease } from '../../src/platform/mongo/driver/lease.js';
import { connectDatabase } from '../../src/platform/mongo/schema/connect.js';
import type { Migration } from '../../src/platform/mongo/schema/migrations/migration.js';
import { FIRST_VERSION, MIGRATIONS, migrate } from '../../src/platform/mongo/schema/migrations.js';
import { readCode, readSection, readTable } from '../support/docs/markdown.js';
import { ADMIN, testUri } from '../support/fixture.js';
import { endLease } from '../support/leases.js';
import { until } from '../support/until.js';

/** It is renewed after a third of it: longer than a busy machine lets that wait. */
const LEASE_MS = 15_000;
const endings: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

async function connect(uri = testUri()): Promise<Database> {
  const database = await connectDatabase(uri);
  endings.push(() => database.client.close());
  return database;
}

const schemaOf = ({ db }: Pick<Database, 'db'>) =>
  db.collection<{ _id: string }>('installation').findOne({ _id: 'schema' });

/** A database as the first release leaves it. */
async function connectToOlder(uri = testUri()): Promise<Database> {
  const database = await connect(uri);
  await migrate(database, { migrations: [] });
  return database;
}

const OF_THE_FIRST = { _id: 'schema', version: FIRST_VERSION, applied: [], created: expect.any(Date) };

/** Waits while another one does it, as the service does. */
async function insist(attempt: () => Promise<unknown>): Promise<void> {
  const succeeds = async (): Promise<boolean> => {
    try {
      await attempt();
      return true;
    } catch (error) {
      if (toApiError(error).status !== 503) throw error;
      return false;
    }
  };
  await until(succeeds, 'its turn');
}

test('lists each migration file, in the order of the numbers', () => {
  const files = readdirSync('src/platform/mongo/schema/migrations').filter((name) => name !== 'migration.ts');
  expect(MIGRATIONS.map(({ name }) => `${name}.ts`)).toEqual(files.sort());
  expect(files.map((name) => Number(name.slice(0, 4)))).toEqual(files.map((_, at) => FIRST_VERSION + at + 1));
});

test('gives a new database the newest version', async () => {
  const database = await connect();
  let ran = 0;
  const migrations = [{ name: '0001-x', run: async () => void ran++ }];
  await migrate(database, { migrations });
  expect([ran, await schemaOf(database)]).toEqual([0, { ...OF_THE_FIRST, version: FIRST_VERSION + 1 }]);
});

describe('instances that start at once', () => {
  test('run each step once, in order', async () => {
    const uri = testUri();
    const ran: string[] = [];
    const step = (name: string): Migration => ({
      name,
      async run({ db }) {
        ran.push(name);
        await db.collection('labels').updateOne({ name }, { $inc: { count: 1 } }, { upsert: true });
      },
    });
    const migrations = [step('0001-a'), step('0002-b'), step('0003-c')];
    const first = await connectToOlder(uri);
    const databases = [first, ...(await Promise.all([connect(uri), connect(uri), connect(uri)]))];
    await Promise.all(databases.map((database) => insist(() => migrate(database, { migrations }))));
    expect(ran).toEqual(['0001-a', '0002-b', '0003-c']);
    const { version, applied } = (await schemaOf(first)) as unknown as { version: number; applied: { name: string }[] };
    expect([version, applied.map(({ name }) => name)]).toEqual([FIRST_VERSION + 3, ran]);
  });

  test('go on where one was killed, when its lease has ended', async () => {
    const uri = testUri();
    const killed = await connectToOlder(uri);
    const next = await connect(uri);
    let runs = 0;
    const half: Migration = {
      name: '0001-half',
      async run({ client, db }) {
        if (runs++ > 0) return void (await db.collection('labels').insertOne({ name: 'whole' }));
        await db.collection('labels').insertOne({ name: 'half' });
        // What a process leaves behind that is killed here: a lease that nobody renews.
        await client.close();
        await new Promise(() => undefined);
      },
    };
    const options = { migrations: [half] };
    void migrate(killed, options).catch(() => undefined);
    await until(async () => (await next.db.collection('labels').countDocuments()) === 1);
    await expect(migrate(next, options)).rejects.toMatchObject({ status: 503 });
    expect(await schemaOf(next)).toEqual(OF_THE_FIRST);
    await endLease(next.db, 'schema');
    await insist(() => migrate(next, options));
    expect(runs).toBe(2);
    expect(await schemaOf(next)).toMatchObject({ version: FIRST_VERSION + 1, applied: [{ name: '0001-half' }] });
  });

  test('do not record what they did after another took over', async () => {
    const database = await connectToOlder();
    const slow: Migration = {
      name: '0001-slow',
      async run({ db }, lost) {
        await db
          .collection<{ _id: string }>('installation')
          .updateOne({ _id: 'lease: schema' }, { $set: { holder: 'another' } });
        await until(() => lost.aborted);
      },
    };
    await expect(migrate(database, { migrations: [slow], leaseMs: 300 })).rejects.toMatchObject({ status: 503 });
    expect(await schemaOf(database)).toEqual(OF_THE_FIRST);
  });
});

test('holds a lease in one process, renews it while it is held, and releases it', async () => {
  const database = await connect();
  const lease = await acquireLease(database, 'test', LEASE_MS);
  expect(lease).not.toBeNull();
  const leases = database.db.collection<{ _id: string; until: Date }>('installation');
  const untilOf = async () => (await leases.findOne({ _id: 'lease: test' }))?.until.getTime() ?? 0;
  const first = await untilOf();
  await until(async () => (await untilOf()) > first, 'it was renewed');
  expect([await acquireLease(database, 'test', LEASE_MS), lease?.lost.aborted]).toEqual([null, false]);
  await lease?.release();
  const other = await acquireLease(database, 'test', LEASE_MS);
  expect(other).not.toBeNull();
  await other?.release();
});

describe('a start', () => {
  const isListed = (message: string): boolean =>
    readTable(readSection('docs/operations/troubleshooting.md', 'Troubleshooting'))
      .flatMap(([cell]) => readCode(cell))
      .some((text) => message.includes(text.replaceAll('…', '').trim()));

  test.each([
    ['on the data of a newer version', [{ _id: 'schema', version: 99, applied: [] }], 'used by a newer Vigil'],
    ['on data that has no version', [{ _id: 'first start' }], 'from before the first release'],
    ['where a restore is unfinished', [{ _id: 'restoring' }], 'run it again with --replace'],
  ])('is refused %s', async (_, marks, why) => {
    const uri = testUri();
    const { db } = await connect(uri);
    await db.collection<{ _id: string }>('installation').insertMany(marks);
    const before = await db.collection('installation').find().toArray();
    const secret = 'test-secret-0123456789-abcdefghijklmnop';
    const config = parseConfig({
      PORT: '0',
      MONGODB_URI: uri,
      SECRET: secret,
      LOG_LEVEL: 'silent',
      ADMIN_PASSWORD: ADMIN.password,
    });
    const error = await startService(config).then(
      ({ stop }) => stop(),
      (thrown: Error) => thrown,
    );
    expect(error).toMatchObject({ message: expect.stringContaining(why) });
    expect(isListed((error as Error).message)).toBe(true);
    expect(await db.collection('installation').find().toArray()).toEqual(before);
    await db.dropDatabase();
  });
});
