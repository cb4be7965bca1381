/** The database as docker-compose.yml sets it up: its user may do what the service does, and nothing else. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { entityOf, expectRefusal } from '../support/answers.js';
import { startTestService, testUri } from '../support/fixture.js';

const { host } = new URL(testUri());
const run = promisify(execFile);
const NAMES = { 'root-password': 'the-password-of-root', 'app-password': 'the-password-of-the-service' };
let folder: string;
let system: MongoClient;

beforeAll(async () => {
  system = await new MongoClient(testUri()).connect();
  folder = await mkdtemp(join(tmpdir(), 'vigil-database-'));
  for (const [name, text] of Object.entries(NAMES)) await writeFile(join(folder, name), `${text}\n`);
  // The image of MongoDB creates this user by itself.
  await system.db('admin').command({ createUser: 'root', pwd: NAMES['root-password'], roles: ['root'] });
});

afterAll(async () => {
  await system.db('vigil').command({ dropAllUsersFromDatabase: 1 });
  await system.db('vigil').dropDatabase();
  await system.db('admin').command({ dropUser: 'root' });
  await system.close();
  await rm(folder, { recursive: true, force: true });
});

const setUp = () =>
  run(process.execPath, ['scripts/ops/database.mjs'], { env: { MONGODB_HOST: host, SECRETS_DIR: folder } });

const uriOf = (password: string): string =>
  `mongodb://vigil:${password}@${host}/vigil?replicaSet=vigil&authSource=vigil`;

test('lets the service run with its user, also after a second setup', async () => {
  await setUp();
  await setUp();
  const service = await startTestService({}, uriOf(NAMES['app-password']));
  try {
    const listener = await service.listen(await service.tokenOf('admin', 'correct horse battery'));
    const object = entityOf(await service.admin('POST', 'objects', { id: 'car', name: 'Car' }));
    await service.admin('POST', 'stores', { name: 'tyres', schema: { type: 'object' } });
    entityOf(await service.admin('POST', 'tyres', { size: 17 }));
    await service.admin('PATCH', 'objects/car', { status: 'on tour' });
    await service.admin('POST', 'objects/car/packets', { speed: 1 });
    const group = entityOf(await service.admin('POST', 'groups', { name: 'Depot' }));
    entityOf(await service.admin('PATCH', `groups/${group._id}`, { name: 'The depot' }));
    expectRefusal(await service.as(null)('POST', 'auth/token', { login: 'admin', password: 'wrong' }), 401);
    await service.settled();
    expect(listener.take().map(({ name }) => name)).toEqual(['object-update', 'object-packet']);
    expect((await service.admin('GET', `objects/${object._id}?only=state.speed`)).body.state).toMatchObject({
      speed: 1,
    });
    listener.close();
  } finally {
    // The user may not drop the database, as tests do at their end.
    await service.service.stop();
    await service.client.close();
  }
});

test('changes the password of the user to that of the secret', async () => {
  await writeFile(join(folder, 'app-password'), 'another-password');
  await setUp();
  const client = await new MongoClient(uriOf('another-password')).connect();
  expect(await client.db().command({ ping: 1 })).toMatchObject({ ok: 1 });
  await client.close();
});

test('shows its user no other database and no other user', async () => {
  await writeFile(join(folder, 'app-password'), 'another-password');
  await setUp();
  const client = await new MongoClient(uriOf('another-password')).connect();
  const refused = { code: 13 };
  try {
    const { databases } = await client.db('admin').command({ listDatabases: 1, nameOnly: true });
    expect(databases.map(({ name }: { name: string }) => name).filter((name: string) => name !== 'vigil')).toEqual([]);
    await expect(client.db('another').collection('objects').findOne()).rejects.toMatchObject(refused);
    await expect(client.db('local').collection('oplog.rs').findOne()).rejects.toMatchObject(refused);
    await expect(client.db().command({ createUser: 'x', pwd: 'y', roles: [] })).rejects.toMatchObject(refused);
    await expect(client.db('admin').command({ getCmdLineOpts: 1 })).rejects.toMatchObject(refused);
  } finally {
    await client.close();
  }
});
