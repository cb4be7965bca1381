/** A MongoDB that is no replica set: the start says so, whatever the address claims. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { defaultCacheFolder } from '../../src/config.js';
import { libraryEnvironment } from '../../src/db/embedded/binary.js';
import { findMongod } from '../../src/db/embedded/mongod.js';
import { startFailing } from '../support/failed-start.js';
import { findFreePort } from '../support/ports.js';
import { until } from '../support/until.js';

let folder: string;
let mongod: ChildProcess;
let uri: string;

beforeAll(async () => {
  const program = await findMongod({
    ...{ binary: process.env.MONGOD_BINARY || null, searchPath: process.env.PATH ?? '' },
    cacheFolder: defaultCacheFolder(process.env, homedir(), process.platform),
    log: { info: () => undefined, warn: () => undefined },
  });
  folder = await mkdtemp(join(tmpdir(), 'vigil-standalone-'));
  const port = await findFreePort();
  const args = [
    '--dbpath',
    folder,
    '--port',
    String(port),
    '--bind_ip',
    '127.0.0.1',
    '--nounixsocket',
    '--noscripting',
  ];
  mongod = spawn(program.file, args, { stdio: 'ignore', ...libraryEnvironment(program.libraryFolder) });
  uri = `mongodb://127.0.0.1:${port}/vigil`;
  const client = new MongoClient(uri, { serverSelectionTimeoutMS: 1_000 });
  await until(
    () =>
      client
        .db()
        .command({ ping: 1 })
        .catch(() => null),
    'it answers',
    60_000,
    50,
  );
  await client.close();
}, 90_000);

afterAll(async () => {
  const exited = once(mongod, 'exit');
  mongod.kill('SIGKILL');
  await exited;
  await rm(folder, { recursive: true, force: true, maxRetries: 10 });
});

test.each([
  ['', 'is a standalone server; a replica set is needed'],
  ['?replicaSet=rs0', 'belongs to the replica set "rs0"'],
])('an address that ends in "%s"', async (query, message) => {
  const env = { MONGODB_URI: `${uri}${query}`, SECRET: 'test-secret-0123456789-abcdefghijklmnop', MQTT_PORT: '' };
  const { code, said } = await startFailing(env);
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining(message) });
  expect(said).toContain('MONGODB_URI');
});
