/** Backups contain all data at one moment; a restored database is the same, byte by byte, with its logins. */
import { createHash } from 'node:crypto';
import { appendFile, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Db, MongoClient, ObjectId } from 'mongodb';
import { writeBackup } from '../../src/backup/backup.js';
import { readManifest } from '../../src/backup/manifest.js';
import { restoreBackup } from '../../src/backup/restore.js';
import { LIMITS } from '../../src/core/limits.js';
import { HOUR_MS } from '../../src/core/units.js';
import { ADMIN, startTestService, type TestService, testUri } from '../support/fixture.js';
import { until } from '../support/until.js';

// The service writes its presence and leases every second, which would change the content during a comparison.
Object.assign(LIMITS, { presenceRenewMs: HOUR_MS, partitionTickMs: HOUR_MS });

let base: string;
let service: TestService;
let tokenBefore: string;
const BOB = { login: 'bob', password: 'bob needs a long one' };

beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'vigil-backup-'));
  service = await startTestService();
  const { admin } = service;
  const { body: group } = await admin('POST', 'groups', { name: 'Depot' });
  await admin('POST', 'users', { ...BOB, group: group._id });
  await admin('POST', 'stores', { name: 'drivers', schema: { type: 'object' } });
  await admin('POST', 'drivers', { name: 'Ada', score: 1.0, big: 2 ** 40, list: [1, 2.5, null, { a: 'ä' }] });
  await admin('POST', 'objects', { id: 'truck-7', name: 'Truck 7', group: group._id });
  const packets = Array.from({ length: 2_500 }, (_, at) => ({
    time: 1_748_764_800_000 + at,
    speed: at / 7,
    whole: at,
  }));
  await admin('POST', 'objects/truck-7/packets', packets);
  await admin('POST', 'objects/truck-7/commands/stop', {});
  await admin('POST', 'auth', ADMIN);
  tokenBefore = await service.tokenOf(ADMIN.login, ADMIN.password);
});

afterAll(async () => {
  await service.stop();
  await rm(base, { recursive: true, force: true });
});

interface Content {
  readonly count: number;
  readonly hash: string;
  readonly indexes: readonly string[];
}

/** The content of every collection: a hash of its documents as they are stored, and its indexes. */
async function contentOf(db: Db): Promise<Record<string, Content>> {
  const names = (await db.listCollections().toArray())
    .map(({ name }) => name)
    .filter((name) => !/^system\./.test(name));
  const entries = names.sort().map(async (name) => {
    const hash = createHash('sha256');
    let count = 0;
    const isLease = { _id: { $not: /^lease: / as never } };
    for await (const document of db
      .collection(name)
      .find(name === 'installation' ? isLease : {}, { raw: true, sort: { _id: 1 } })) {
      hash.update(document as unknown as Uint8Array);
      count++;
    }
    const indexes = (await db.collection(name).indexes()).map(({ key, unique, expireAfterSeconds }) =>
      JSON.stringify({ key, unique, expireAfterSeconds }),
    );
    return [name, { count, hash: hash.digest('hex'), indexes: indexes.sort() }] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
}

/** The stored documents. An empty collection may not exist. */
const documentsOf = (content: Record<string, Content>) =>
  Object.entries(content).flatMap(([name, { count, hash }]) => (count === 0 ? [] : [{ name, count, hash }]));

const indexesOf = (content: Record<string, Content>) =>
  Object.entries(content).map(([name, { indexes }]) => [name, indexes]);

async function connectTo<T>(uri: string, work: (client: MongoClient) => Promise<T>): Promise<T> {
  const client = await new MongoClient(uri).connect();
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

const backUp = async (name: string): Promise<string> => {
  const folder = join(base, name);
  await writeBackup(service.client, folder, Date.now());
  return folder;
};

describe('a backup that is restored into an empty database', () => {
  const uri = testUri();
  afterAll(() => connectTo(uri, (client) => client.db().dropDatabase()));

  test('has the same documents in every collection', async () => {
    const folder = join(base, 'whole');
    let before = await contentOf(service.client.db());
    // Audit entries of the last requests may still be written: the backup counts if nothing changed during it.
    const isSame = async () => {
      await rm(folder, { recursive: true, force: true });
      const earlier = before;
      await backUp('whole');
      before = await contentOf(service.client.db());
      return JSON.stringify(earlier) === JSON.stringify(before);
    };
    await until(isSame, 'a backup during which nothing changes');
    const manifest = await restoreBackup(uri, folder, false);
    const after = await connectTo(uri, (client) => contentOf(client.db()));
    expect(documentsOf(after)).toEqual(documentsOf(before));
    expect(manifest).toMatchObject({ format: 1, exact: true, schema: expect.any(Number) });
    expect(manifest.files.find(({ collection }) => collection === 'packets')?.documents).toBe(2_500);
    expect(manifest.files.map(({ collection }) => collection)).toEqual(
      expect.arrayContaining([
        'users',
        expect.stringMatching(/^custom\.drivers\.[0-9a-f]{24}$/),
        'sessions',
        'installation',
      ]),
    );
  });

  test('accepts the logins and tokens, and has the same entities and indexes', async () => {
    const restored = await startTestService({}, uri);
    const token = await restored.tokenOf(BOB.login, BOB.password);
    const packets = await restored.as(token)('GET', 'objects/truck-7/packets?meta=true');
    expect(packets.body.count).toBe(2_500);
    const later = await service.tokenOf(ADMIN.login, ADMIN.password);
    const statusWith = async (given: string) => (await restored.as(given)('GET', 'auth')).status;
    expect([await statusWith(tokenBefore), await statusWith(later)]).toEqual([200, 401]);
    expect((await restored.admin('GET', 'drivers')).body).toEqual((await service.admin('GET', 'drivers')).body);
    expect((await restored.admin('GET', 'commands')).body).toHaveLength(1);
    expect(indexesOf(await contentOf(restored.client.db()))).toEqual(indexesOf(await contentOf(service.client.db())));
    await restored.service.stop();
    await restored.client.close();
  });

  test('refuses a second restore, unless it replaces everything', async () => {
    const folder = join(base, 'whole');
    await expect(restoreBackup(uri, folder, false)).rejects.toThrow('not empty');
    const expected = (await readManifest(folder)).files.map(({ collection, documents }) => [collection, documents]);
    await connectTo(uri, async (client) => {
      await client.db().collection('labels').insertOne({ name: 'later' });
      await restoreBackup(uri, folder, true);
      const filled = documentsOf(await contentOf(client.db())).map(({ name, count }) => [name, count]);
      expect(filled.sort()).toEqual(expected.filter(([, documents]) => documents !== 0).sort());
    });
  });
});

test('contains the data of one moment while other clients write', async () => {
  const [labels, packets] = ['labels', 'packets'].map((name) => service.client.db().collection(name));
  const object = new ObjectId();
  const pairs = { written: 0, done: false };
  const writing = (async () => {
    while (!pairs.done) {
      const n = pairs.written + 1;
      await labels?.insertOne({ name: `pair ${n}`, branch: [], access: [] });
      await packets?.insertOne({ _oid: object, time: n, _ts: n, online: true });
      pairs.written = n;
    }
  })();
  await until(() => pairs.written >= 20, 'pairs of a label and a packet');
  const begun = pairs.written;
  const folder = await backUp('moment');
  const ended = pairs.written;
  pairs.done = true;
  await writing;
  expect(ended).toBeGreaterThan(begun);
  const uri = testUri();
  await restoreBackup(uri, folder, false);
  await connectTo(uri, async (client) => {
    const labelled = await client
      .db()
      .collection('labels')
      .countDocuments({ name: /^pair / });
    const sent = await client.db().collection('packets').countDocuments({ _oid: object });
    expect(sent).toBeGreaterThanOrEqual(begun);
    expect(labelled - sent).toBeGreaterThanOrEqual(0);
    expect(labelled - sent).toBeLessThanOrEqual(1);
    await client.db().dropDatabase();
  });
});

describe('a restore', () => {
  const spoiled: [string, (folder: string) => Promise<unknown>, string][] = [
    ['without its manifest', (folder) => rm(join(folder, 'manifest.json')), 'it has no manifest.json'],
    ['with a file missing', (folder) => rm(join(folder, 'users.bson.gz')), 'users.bson.gz is missing'],
    ['with a byte more', (folder) => appendFile(join(folder, 'users.bson.gz'), 'x'), 'is damaged'],
    ['from before the first release', (folder) => change(folder, { schema: 0 }), 'before the first release'],
    ['of another format', (folder) => change(folder, { format: 2 }), 'has the format 2'],
    ['of a newer version', (folder) => change(folder, { schema: 99 }), 'a newer Vigil'],
  ];

  async function change(folder: string, more: object): Promise<void> {
    const file = join(folder, 'manifest.json');
    await writeFile(file, JSON.stringify({ ...JSON.parse(await readFile(file, 'utf8')), ...more }));
  }

  test.each(spoiled)('refuses a backup %s, and changes nothing', async (name, spoil, why) => {
    const folder = await backUp(name);
    await spoil(folder);
    const uri = testUri();
    await expect(restoreBackup(uri, folder, true)).rejects.toThrow(why);
    await connectTo(uri, async (client) => expect(await client.db().listCollections().toArray()).toEqual([]));
  });

  test('leaves a database on which Vigil does not start if it fails, until it is repeated', async () => {
    const folder = await backUp('short');
    const manifest = await readManifest(folder);
    const files = manifest.files.map((file) => (file.collection === 'labels' ? { ...file, documents: 9_999 } : file));
    await change(folder, { files });
    const uri = testUri();
    await expect(restoreBackup(uri, folder, false)).rejects.toThrow('not 9999');
    await expect(startTestService({}, uri)).rejects.toThrow('is unfinished');
    await expect(restoreBackup(uri, folder, false)).rejects.toThrow('not empty');
    await change(folder, { files: manifest.files });
    await restoreBackup(uri, folder, true);
    const restored = await startTestService({}, uri);
    expect((await restored.admin('GET', 'objects/truck-7')).status).toBe(200);
    await restored.stop();
  });
});

test('refuses a folder that is not empty, and makes files that only their owner can read', async () => {
  const folder = await backUp('modes');
  await expect(writeBackup(service.client, folder, 0)).rejects.toThrow('is not empty');
  const modes = await Promise.all(
    (await readdir(folder)).map(async (name) => (await stat(join(folder, name))).mode & 0o777),
  );
  expect([...new Set(modes), (await stat(folder)).mode & 0o777]).toEqual([0o600, 0o700]);
  expect((await readdir(base)).filter((name) => name.endsWith('.partial'))).toEqual([]);
});

test('refuses a database without data of Vigil', async () => {
  await connectTo(testUri(), async (client) => {
    await expect(writeBackup(client, join(base, 'nothing'), 0)).rejects.toThrow('no Vigil has used it');
  });
  expect(await readdir(base)).not.toContain('nothing');
});
