/** The embedded database with a real mongod: its data, address and access after stops, kills and freezes. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { defaultCacheFolder } from '../../src/config.js';
import {
  bringUp,
  type InstanceSettings,
  isFreePort,
  pathsOf,
  startInstance,
  uriOf,
} from '../../src/platform/mongo/embedded/instance.js';
import { findMongod } from '../../src/platform/mongo/embedded/mongod.js';
import { type Embedded, startEmbedded } from '../../src/platform/mongo/embedded/start.js';
import { startReady, supervise } from '../../src/platform/mongo/embedded/supervise.js';
import { freezeProcess } from '../support/freeze.js';
import { until } from '../support/until.js';

const searchPath = process.env.PATH ?? '';
const cacheFolder = defaultCacheFolder(process.env, homedir(), process.platform);
const quiet = { info() {}, warn() {} };
const endings: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'vigil-embedded-'));
  endings.push(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function start(dataFolder: string): Promise<Embedded & { said: string[] }> {
  const said: string[] = [];
  const note = (_fields: object, message: string) => void said.push(message);
  const log = { info: note, warn: note };
  const options = { dataFolder, mongodBinary: null, searchPath, cacheFolder, log, cacheSizeMb: 256 };
  const embedded = await startEmbedded(options);
  endings.push(() => embedded.stop());
  return { ...embedded, said };
}

function open(uri: string): MongoClient {
  const client = new MongoClient(uri, { serverSelectionTimeoutMS: 60_000 });
  endings.push(() => client.close());
  return client;
}

const notesOf = (uri: string) => open(uri).db().collection<{ _id: number }>('notes');
const portOf = (uri: string) => Number(/:(\d+)\//.exec(uri)?.[1]);
const idsIn = async (uri: string) => (await notesOf(uri).find().sort('_id').toArray()).map(({ _id }) => _id);

async function processOf(dataFolder: string): Promise<number> {
  return Number(await readFile(join(dataFolder, 'mongodb', 'data', 'mongod.lock'), 'utf8'));
}

/** Starts the database in a process of its own, which is killed later; resolves with its address. */
async function startInChild(dataFolder: string) {
  const options = { dataFolder, mongodBinary: null, searchPath, cacheFolder, cacheSizeMb: 256 };
  const code = `
    import { startEmbedded } from ${JSON.stringify(resolve('src/platform/mongo/embedded/start.ts'))};
    const log = { info() {}, warn() {} };
    console.log((await startEmbedded({ ...${JSON.stringify(options)}, log })).uri);
  `;
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', code]);
  const [uri] = await once(child.stdout, 'data');
  endings.push(async () => {
    const left = await processOf(dataFolder);
    if (left > 0) process.kill(left, 'SIGKILL');
  });
  return { child, uri: String(uri).trim() };
}

async function killAndWait(child: Awaited<ReturnType<typeof startInChild>>['child']) {
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

test('makes a private folder and a primary, and keeps the data after a stop', async () => {
  const folder = join(await makeFolder(), 'data');
  const first = await start(folder);
  expect(await open(first.uri).db('admin').command({ hello: 1 })).toMatchObject({
    isWritablePrimary: true,
    setName: 'vigil',
  });
  await notesOf(first.uri).insertOne({ _id: 1 });
  const modeOf = async (...parts: string[]) => (await stat(join(folder, ...parts))).mode & 0o777;
  expect([await modeOf(), await modeOf('mongodb'), await modeOf('mongodb', 'key')]).toEqual([0o700, 0o700, 0o600]);

  const oldProcess = await processOf(folder);
  await Promise.all([first.stop(), first.stop()]);
  await first.stop();
  expect(await first.whenExited).toBe('stopped');
  expect(() => process.kill(oldProcess, 0)).toThrow('ESRCH');

  const second = await start(folder);
  expect(second.uri).toBe(first.uri);
  expect(await idsIn(second.uri)).toEqual([1]);
});

test('disables what the service does not use, and refuses clients without the key', async () => {
  const { uri } = await start(await makeFolder());
  const { parsed } = await open(uri).db('admin').command({ getCmdLineOpts: 1 });
  expect(parsed).toMatchObject({
    net: { bindIp: '127.0.0.1', compression: { compressors: 'disabled' }, unixDomainSocket: { enabled: false } },
    security: { javascriptEnabled: false },
    setParameter: { diagnosticDataCollectionEnabled: 'false', enableLocalhostAuthBypass: 'false' },
  });
  const address = `127.0.0.1:${portOf(uri)}`;
  const stranger = open(`mongodb://${address}/?directConnection=true`);
  await expect(stranger.db('vigil').collection('notes').findOne()).rejects.toThrow(/requires authentication/);
  const intruder = { createUser: 'intruder', pwd: 'let me in', roles: ['root'] };
  await expect(stranger.db('admin').command(intruder)).rejects.toThrow(/requires authentication/);
  const guesser = open(uri.replace(/__system:[^@]+/, '__system:guess'));
  await expect(guesser.db('vigil').collection('notes').findOne()).rejects.toThrow('Authentication failed');
  await expect(notesOf(uri).findOne({ $where: 'true' })).rejects.toThrow(/script/i);
});

test('restarts a killed mongod at the same address with every acknowledged write', async () => {
  const folder = await makeFolder();
  const { uri, said } = await start(folder);
  const notes = notesOf(uri);
  const acknowledged: number[] = [];
  let id = 0;
  const write = async (count: number) => {
    for (const goal = acknowledged.length + count; acknowledged.length < goal; id += 1) {
      const inserted = await notes.insertOne({ _id: id }).catch(() => null);
      if (inserted) acknowledged.push(id);
    }
  };
  for (const _round of [1, 2]) {
    await write(50);
    process.kill(await processOf(folder), 'SIGKILL');
    await write(10);
  }
  const restarts = () => said.filter((message) => message === 'MongoDB restarted');
  // A client may connect before the restart is logged.
  await until(() => restarts().length >= 2, 'the restarts in the log');
  expect(restarts()).toHaveLength(2);
  expect(await idsIn(uri)).toEqual(expect.arrayContaining(acknowledged));
});

test('stops a mongod whose service was killed, and takes over its data', async () => {
  const folder = await makeFolder();
  const { child, uri } = await startInChild(folder);
  await notesOf(uri).insertOne({ _id: 1 });
  const orphan = await processOf(folder);
  await killAndWait(child);
  process.kill(orphan, 0);

  const taken = await start(folder);
  expect(taken.said[0]).toMatch(/killed service still runs/);
  expect(taken.uri).toBe(uri);
  expect(await processOf(folder)).not.toBe(orphan);
  expect(await idsIn(taken.uri)).toEqual([1]);
});

test.each<{ hurt(processId: number): unknown; name: string }>([
  { hurt: (processId) => process.kill(processId, 'SIGKILL'), name: 'its service and mongod were both killed' },
  { hurt: freezeProcess, name: 'its service was killed and its mongod hangs' },
])('starts with the data after $name', async ({ hurt }) => {
  const folder = await makeFolder();
  const { child, uri } = await startInChild(folder);
  await notesOf(uri).insertOne({ _id: 1 });
  await killAndWait(child);
  await hurt(await processOf(folder));
  const again = await start(folder);
  expect(again.uri).toBe(uri);
  expect(await idsIn(again.uri)).toEqual([1]);
});

test('refuses a second start on the same folder, and names the process that uses it', async () => {
  const folder = await makeFolder();
  const { uri } = await start(folder);
  await expect(start(folder)).rejects.toThrow(`The data folder ${folder} is in use by process ${process.pid}`);
  await notesOf(uri).insertOne({ _id: 1 });
});

test('moves from a port that is taken to another one, and keeps that', async () => {
  const folder = await makeFolder();
  const first = await start(folder);
  await notesOf(first.uri).insertOne({ _id: 1 });
  await first.stop();
  const squatter = createServer((socket) =>
    socket
      .on('error', () => {})
      .resume()
      .end('not MongoDB'),
  );
  await once(squatter.listen(portOf(first.uri), '127.0.0.1'), 'listening');
  endings.push(async () => squatter.close());

  const moved = await start(folder);
  expect(portOf(moved.uri)).not.toBe(portOf(first.uri));
  await notesOf(moved.uri).insertOne({ _id: 2 });
  await moved.stop();
  squatter.close();
  await once(squatter, 'close');
  const third = await start(folder);
  expect(third.uri).toBe(moved.uri);
  expect(await idsIn(third.uri)).toEqual([1, 2]);
});

test('takes a copy of the folder as another database', async () => {
  const folder = await makeFolder();
  const copy = await makeFolder();
  const first = await start(folder);
  await first.stop();
  await new Promise((done) => spawn('cp', ['-r', join(folder, 'mongodb'), copy]).on('exit', done));
  const original = await start(folder);
  const other = await start(copy);
  expect(other.uri).not.toBe(original.uri);
  await notesOf(original.uri).insertOne({ _id: 1 });
  expect(await idsIn(other.uri)).toEqual([]);
});

test('names a folder that cannot be created', async () => {
  const file = join(await makeFolder(), 'file');
  await writeFile(file, '');
  await expect(start(join(file, 'data'))).rejects.toThrow(`The data folder ${join(file, 'data')} cannot be written to`);
});

test('reports why mongod refuses its files, and releases the folder', async () => {
  const folder = await makeFolder();
  await (await start(folder)).stop();
  const { data } = pathsOf(join(folder, 'mongodb'));
  await writeFile(join(data, 'storage.bson'), 'not BSON');
  await expect(start(folder)).rejects.toThrow(/mongod exited \(.*\): .*(storage\.bson|metadata)/);
  await expect(start(folder)).rejects.toThrow(/mongod exited/);
});

/** What a run of mongod needs, for a folder in which the embedded database was started before. */
async function settingsIn(folder: string): Promise<InstanceSettings> {
  const ours = join(folder, 'mongodb');
  const mongod = await findMongod({ binary: null, searchPath, cacheFolder, log: quiet });
  const port = Number(await readFile(pathsOf(ours).port, 'utf8'));
  expect(await isFreePort(port)).toBe(true);
  return { mongod, folder: ours, port, key: await readFile(pathsOf(ours).key, 'utf8'), cacheSizeMb: 256 };
}

test('gives up a mongod that does not start any more, with the reason', async () => {
  const folder = await makeFolder();
  await (await start(folder)).stop();
  const found = await settingsIn(folder);
  const file = join(folder, 'program');
  await symlink(found.mongod.file, file);
  const settings = { ...found, mongod: { ...found.mongod, file } };
  const instance = await startReady(settings);
  const supervised = supervise(instance, settings, quiet, { failedStarts: 3, longestPauseMs: 20 });
  endings.push(() => supervised.stop());
  await rm(file);
  instance.child.kill('SIGKILL');
  expect(await supervised.whenExited).toMatch(/ENOENT/);
});

test('waits for a mongod that takes connections long before it answers', async () => {
  const folder = await makeFolder();
  await (await start(folder)).stop();
  const settings = await settingsIn(folder);
  const instance = startInstance(settings);
  endings.push(async () => {
    instance.child.kill('SIGKILL');
    await instance.ended;
  });
  // The driver tries twice a second, and a command gives up after 5 s.
  let refusals = 15;
  const before = createServer((near) => {
    near.on('error', () => {});
    if (refusals-- > 0) return void near.destroy();
    const far = connect(settings.port, '127.0.0.1');
    far.on('error', () => {}).on('close', () => near.destroy());
    near.on('close', () => far.destroy());
    near.pipe(far).pipe(near);
  });
  endings.push(async () => before.close());
  await once(before.listen(0, '127.0.0.1'), 'listening');
  const { port } = before.address() as AddressInfo;
  await bringUp(instance, { ...settings, port });
  await notesOf(uriOf(settings.key, port)).insertOne({ _id: 1 });
  expect(refusals).toBeLessThan(0);
});
