/** `node dist/scripts/compress.js` asks for it, shows how far it is, and gives it up. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { startCompression } from '../../src/db/compression/compression.js';
import { databaseOf } from '../../src/db/driver/client.js';
import { LIMITS } from '../../src/model/limits.js';
import { testUri } from '../support/fixture.js';
import { startProgram } from '../support/program.js';
import { createUncompressed, findCompression } from '../support/uncompressed.js';
import { until } from '../support/until.js';

Object.assign(LIMITS, { compressionCheckMs: 20, compressionIdleMs: 20 });

const endings: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

async function prepare() {
  const uri = testUri();
  const client = await new MongoClient(uri).connect();
  endings.push(
    () => client.close(),
    () => client.db().dropDatabase(),
  );
  const run = async (...args: string[]) => {
    const env = { ...process.env, MONGODB_URI: uri };
    const { ended, output } = startProgram(['dist/scripts/compress.js', ...args], env);
    return { code: await ended, said: output() };
  };
  const start = () => {
    const log = { info: () => undefined, warn: () => undefined };
    const job = startCompression({ database: databaseOf(client), log });
    endings.push(() => job.stop());
  };
  return { db: client.db(), uri, run, start };
}

test('shows what was done, also afterwards', async () => {
  const { db, run, start } = await prepare();
  await createUncompressed(db);
  await db.collection('packets').insertMany(Array.from({ length: 1_234 }, (_, n) => ({ n })));
  expect(await run('--status')).toEqual({ code: 0, said: 'Nobody has asked to compress packets.\n' });
  expect(await run('--stop')).toEqual({ code: 0, said: 'No packets are being compressed.\n' });
  start();
  const { code, said } = await run();
  expect({ code, said: said.trim().split('\n').at(-1) }).toEqual({
    code: 0,
    said: expect.stringMatching(/^Compressed about 1,234 packets: \S+ \S+ before, \S+ \S+ now\.$/),
  });
  expect(await run('--status')).toEqual({ code: 0, said: expect.stringContaining('Compressed about 1,234 packets') });
  expect(await run()).toEqual({ code: 0, said: expect.stringContaining('The packets are compressed: ') });
});

test('fails with the reason why packets cannot be compressed', async () => {
  const { db, run, start } = await prepare();
  await db.createCollection('packets', { capped: true, size: 100_000 });
  start();
  expect(await run()).toEqual({
    code: 1,
    said: expect.stringContaining('The packets cannot be compressed: the collection packets has the option capped.'),
  });
});

test('gives it up', async () => {
  const { db, run, start } = await prepare();
  await createUncompressed(db);
  const following = run();
  const installation = db.collection<{ _id: string }>('installation');
  for (let isThere = false; !isThere; ) isThere = (await installation.findOne({ _id: 'compression' })) !== null;
  const stopping = run('--stop');
  for (let isUnwanted = false; !isUnwanted; ) {
    isUnwanted = (await installation.findOne({ _id: 'compression', isUnwanted: true })) !== null;
  }
  start();
  const expected = expect.stringContaining('The compression was stopped; the packets stay as they were.');
  expect(await following).toEqual({ code: 0, said: expected });
  expect(await stopping).toEqual({ code: 0, said: expected });
});

test('ends with Ctrl-C, and leaves the work to the service', async () => {
  const { db, uri } = await prepare();
  await createUncompressed(db);
  const { child, ended, output } = startProgram(['dist/scripts/compress.js'], { ...process.env, MONGODB_URI: uri });
  await until(() => output().includes('Requested.'));
  child.kill('SIGINT');
  expect(await ended).toBe(0);
  expect(await findCompression(db)).toMatchObject({ stage: 'requested', isUnwanted: false });
});

test('requests it of an embedded database that no Vigil runs on, and ends, so that one can start', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'vigil-compress-'));
  endings.push(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, 'mongodb'));
  const env = { ...process.env, DATA_DIR: folder, MONGODB_URI: '' };
  const { ended, output } = startProgram(['dist/scripts/compress.js'], env);
  expect(await ended).toBe(0);
  expect(output()).toContain('Requested. A Vigil that runs on this database begins within 30 seconds.');
}, 60_000);
