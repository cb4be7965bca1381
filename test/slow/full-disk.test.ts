/** The embedded database on a small disk that becomes full. Needs the right to mount a file system in memory. */
import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { defaultCacheFolder } from '../../src/config.js';
import { pathsOf, uriOf } from '../../src/platform/mongo/embedded/instance.js';
import { findMongod } from '../../src/platform/mongo/embedded/mongod.js';
import { startEmbedded } from '../../src/platform/mongo/embedded/start.js';
import { startReady, supervise } from '../../src/platform/mongo/embedded/supervise.js';
import { until } from '../support/until.js';

let folder: string;
let isMounted = false;
const search = {
  binary: process.env.MONGOD_BINARY || null,
  searchPath: process.env.PATH ?? '',
  cacheFolder: defaultCacheFolder(process.env, homedir(), process.platform),
  log: { info: () => undefined, warn: () => undefined },
};
const start = () => startEmbedded({ ...search, dataFolder: folder, mongodBinary: search.binary });

/** Fills the disk until the file is removed, including the space that mongod has released since the last call. */
function fillDisk(): string {
  const file = join(folder, 'filler');
  spawnSync('dd', ['if=/dev/zero', `of=${file}`, 'bs=64k', 'oflag=append', 'conv=notrunc']);
  return file;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'vigil-small-'));
  isMounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=700m', 'tmpfs', folder]).status === 0;
  if (!isMounted) console.warn('no disk can be mounted here: the test of a small disk is left out');
});
afterAll(async () => {
  if (isMounted) spawnSync('umount', ['-l', folder]);
  await rm(folder, { recursive: true, force: true });
});

test('reports how much space a new database needs, and starts an existing one with less', async () => {
  if (!isMounted) return;
  const filler = join(folder, 'filler');
  await writeFile(filler, Buffer.alloc(300 * 1024 ** 2));
  await expect(start()).rejects.toThrow(/Too little disk space .* MiB .*DATA_DIR/);
  await rm(filler);
  await (await start()).stop();
  // An existing database starts with the space that is left.
  await writeFile(filler, Buffer.alloc(200 * 1024 ** 2));
  const database = await start();
  const ours = join(folder, 'mongodb');
  const client = new MongoClient(
    uriOf(await readFile(pathsOf(ours).key, 'utf8'), Number(await readFile(pathsOf(ours).port, 'utf8'))),
  );
  const added = client.db('trial').collection('added');
  await added.insertOne({ id: 'a' });
  // By default, mongod builds no index where less than 500 MiB are free.
  const index = await added.createIndex({ id: 1 }).catch(String);
  await client.close();
  await database.stop();
  expect(index).toBe('id_1');
});

test('waits for free space while mongod fails on the full disk, and then continues with all data', async () => {
  if (!isMounted) return;
  const ours = join(folder, 'mongodb');
  const key = await readFile(pathsOf(ours).key, 'utf8');
  const port = Number(await readFile(pathsOf(ours).port, 'utf8'));
  const settings = { mongod: await findMongod(search), folder: ours, port, key, cacheSizeMb: 256 };
  const instance = await startReady(settings);
  const reports: string[] = [];
  const log = { info: () => undefined, warn: (_: object, message: string) => void reports.push(message) };
  const patience = { failedStarts: 1, longestPauseMs: 50 };
  const supervised = supervise(instance, settings, log, patience);
  let exited = '';
  void supervised.whenExited.then((reason) => {
    exited = reason;
  });
  const stored = async () => {
    const client = new MongoClient(uriOf(key, port), { serverSelectionTimeoutMS: 60_000 });
    const count = await client.db('trial').collection('kept').countDocuments();
    await client.close();
    return count;
  };
  const client = new MongoClient(uriOf(key, port));
  await client
    .db('trial')
    .collection('kept')
    .insertOne({}, { writeConcern: { w: 'majority' } });
  await client.close();

  const filler = fillDisk();
  instance.child.kill('SIGKILL');
  await instance.ended;
  // A mongod that comes up on the full disk notices when it writes.
  const makeWrite = async () => {
    const writer = new MongoClient(uriOf(key, port), { serverSelectionTimeoutMS: 200, socketTimeoutMS: 2_000 });
    const large = { text: 'x'.repeat(1_000_000) };
    await Promise.allSettled([writer.db('trial').collection('more').insertOne(large)]);
    await Promise.allSettled([writer.db('admin').command({ fsync: 1 })]);
    await writer.close(true);
  };
  const isReported = async () => {
    fillDisk();
    await makeWrite();
    return reports.some((report) => report.startsWith('The disk is full: '));
  };
  await until(isReported, 'a report of the full disk');
  expect(exited).toBe('');
  await rm(filler);
  expect([await stored(), exited]).toEqual([1, '']);

  await supervised.stop();
  fillDisk();
  await expect(start()).rejects.toThrow(/^The disk is full: .* has \d+ MiB free.*Free some space/);
});
