/** What an older version has stored is brought up to date: once, whoever starts, however often one is killed at it. */
import { readdirSync } from 'node:fs';
import { afterEach, describe, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { startService } from '../../src/app.js';
import { parseConfig } from '../../src/config.js';
import type { Database } from '../../src/db/driver/client.js';
import { acquireLease } from '../../src/db/driver/lease.js';
import { connectDatabase } from '../../src/db/schema/connect.js';
import type { Migration } from '../../src/db/schema/migrations/migration.js';
import { MIGRATIONS, migrate } from '../../src/db/schema/migrations.js';
import { toApiError } from '../../src/errors.js';
import { readCode, readSection, readTable } from '../support/docs/markdown.js';
import { ADMIN, startTestService, testUri } from '../support/fixture.js';
import { OLDER, writeOlderData } from '../support/older.js';
import { until } from '../support/until.js';

/** Longer than a busy machine lets a renewal, or a question, wait. */
const LEASE_MS = 3_000;
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

/** A database that somebody has used, but no version that kept a record. */
async function connectToOlder(uri = testUri()): Promise<Database> {
  const database = await connect(uri);
  await database.db.collection<{ _id: string }>('installation').insertOne({ _id: 'first start' });
  return database;
}

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
  await until(succeeds, 'its turn', 30_000);
}

test('each is a file, in the order of their numbers', () => {
  const files = readdirSync('src/db/schema/migrations').filter((name) => name !== 'migration.ts');
  expect(MIGRATIONS.map(({ name }) => `${name}.ts`)).toEqual(files.sort());
  expect(files.map((name) => Number(name.slice(0, 4)))).toEqual(files.map((_, at) => at + 1));
});

describe('the data of an older version', () => {
  test('is taken over whole by the first start, and found so by the second', async () => {
    const uri = testUri();
    const client = await new MongoClient(uri).connect();
    endings.push(() => client.close());
    const nowMs = Date.now();
    await writeOlderData(client.db(), nowMs);
    const service = await startTestService({}, uri);
    const object = await service.admin('GET', 'objects/older-1');
    expect(object.body).toMatchObject({ _id: OLDER.object, name: 'Older', state: { speed: 7 }, success: true });
    const young = await service.admin('GET', `commands/${OLDER.newCommand}`);
    expect(young.body).toMatchObject({ status: 'queued', expires: nowMs + 86_400_000 });
    await until(async () => (await service.admin('GET', `commands/${OLDER.oldCommand}`)).body.status === 'expired');
    expect((await service.admin('POST', 'objects/older-1/packets', { speed: 8 })).status).toBe(200);
    const record = {
      version: MIGRATIONS.length,
      applied: MIGRATIONS.map(({ name }) => ({ name, time: expect.any(Number) })),
    };
    const recorded = await schemaOf({ db: client.db() });
    expect(recorded).toEqual({ _id: 'schema', ...record });
    await service.service.stop();
    const again = await startService(
      parseConfig({
        PORT: '0',
        MONGODB_URI: uri,
        SECRET: 'test-secret-0123456789-abcdefghijklmnop',
        LOG_LEVEL: 'silent',
      }),
    );
    endings.push(() => client.db().dropDatabase(), again.stop);
    expect(again.generatedPassword).toBeNull();
    expect(await schemaOf({ db: client.db() })).toEqual(recorded);
    await service.client.close();
  });

  test('that is new is of the newest version from the start', async () => {
    const database = await connect();
    let ran = 0;
    const migrations = [{ name: '0001-x', run: async () => void ran++ }];
    await migrate(database, { migrations });
    expect([ran, await schemaOf(database)]).toEqual([0, { _id: 'schema', version: 1, applied: [] }]);
  });
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
    expect([version, applied.map(({ name }) => name)]).toEqual([3, ran]);
  });

  test('go on where one was killed, when its lease has ended', async () => {
    const uri = testUri();
    const [killed, next] = [await connectToOlder(uri), await connect(uri)];
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
    const options = { migrations: [half], leaseMs: LEASE_MS };
    void migrate(killed, options).catch(() => undefined);
    await until(async () => (await next.db.collection('labels').countDocuments()) === 1);
    await expect(migrate(next, options)).rejects.toMatchObject({ status: 503 });
    expect(await schemaOf(next)).toBeNull();
    await insist(() => migrate(next, options));
    expect(runs).toBe(2);
    expect(await schemaOf(next)).toMatchObject({ version: 1, applied: [{ name: '0001-half' }] });
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
    expect(await schemaOf(database)).toBeNull();
  });
});

test('a lease is held by one, renewed while it is held, and given back', async () => {
  const database = await connect();
  const lease = await acquireLease(database, 'test', LEASE_MS);
  expect(lease).not.toBeNull();
  const leases = database.db.collection<{ _id: string; until: Date }>('installation');
  const untilOf = async () => (await leases.findOne({ _id: 'lease: test' }))?.until.getTime() ?? 0;
  const first = await untilOf();
  await until(async () => (await untilOf()) > first + LEASE_MS, 'it was renewed', 30_000);
  expect([await acquireLease(database, 'test', LEASE_MS), lease?.lost.aborted]).toEqual([null, false]);
  await lease?.release();
  const other = await acquireLease(database, 'test', LEASE_MS);
  expect(other).not.toBeNull();
  await other?.release();
});

describe('a start is refused', () => {
  const isListed = (message: string): boolean =>
    readTable(readSection('docs/operations/troubleshooting.md', 'Troubleshooting'))
      .flatMap(([cell]) => readCode(cell))
      .some((text) => message.includes(text.replaceAll('…', '').trim()));

  test.each([
    ['where a newer version has been', { _id: 'schema', version: 99, applied: [] }, 'used by a newer Vigil'],
    ['where a restore was not finished', { _id: 'restoring' }, 'run it again with --replace'],
  ])('%s', async (_, mark, why) => {
    const uri = testUri();
    const { db } = await connectToOlder(uri);
    await db.collection<{ _id: string }>('installation').insertOne(mark);
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
