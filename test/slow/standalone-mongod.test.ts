/** Starts on a MongoDB that is not a replica set. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startFailing } from '../support/failed-start.js';
import { type LocalMongod, startLocalMongod } from '../support/local-mongod.js';

let folder: string;
let mongod: LocalMongod;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'vigil-standalone-'));
  mongod = await startLocalMongod(folder);
});

afterAll(async () => {
  await mongod?.kill();
  await rm(folder, { recursive: true, force: true, maxRetries: 10 });
});

test.each([
  ['', 'is a standalone server; a replica set is needed'],
  ['?replicaSet=rs0', 'belongs to the replica set "rs0"'],
])('reports a standalone server for an address that ends in "%s"', async (query, message) => {
  const env = {
    MONGODB_URI: `mongodb://127.0.0.1:${mongod.port}/vigil${query}`,
    SECRET: 'test-secret-0123456789-abcdefghijklmnop',
    MQTT_PORT: '',
  };
  const { code, said } = await startFailing(env);
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining(message) });
  expect(said).toContain('MONGODB_URI');
});
