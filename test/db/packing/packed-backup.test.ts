/** Backups have packed history, and a restore has each packet once, also where rows were packed while the backup was written. */
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Binary, BSON, MongoClient, ObjectId } from 'mongodb';
import { countPacketsIn, writeBackup } from '../../../src/backup/backup.js';
import type { BackupFile, Manifest } from '../../../src/backup/manifest.js';
import { restoreBackup } from '../../../src/backup/restore.js';
import { packRows, storePending, unpackBucket } from '../../../src/packets/store/packing.js';
import { type Database, databaseOf } from '../../../src/platform/mongo/driver/client.js';
import { testUri, useService } from '../../support/fixture.js';
import { packHistory, readHistory, readStoredRows } from '../../support/packed.js';

const service = useService();
const START_MS = Date.UTC(2026, 0, 1);
const uri = testUri();
let base: string;
let restored: Database;

beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'vigil-packed-backup-'));
  restored = databaseOf(await new MongoClient(uri).connect());
});
afterAll(async () => {
  await restored.db.dropDatabase();
  await restored.client.close();
  await rm(base, { recursive: true, force: true });
});

const database = () => databaseOf(service.client);
const bytesOf = async (where: Database, objectId: string): Promise<string[]> =>
  (await readHistory(where, objectId)).map((packet) => Buffer.from(BSON.serialize(packet)).toString('hex'));

async function createHistory(): Promise<string> {
  const { _id } = (await service.admin('POST', 'objects', { id: `press-${new ObjectId()}`, name: 'Press' })).body;
  const packets = Array.from({ length: 100 }, (_, nth) => ({ time: START_MS + nth * 1_000, nth, half: nth / 2 }));
  await service.admin('POST', `objects/${_id}/packets`, packets);
  return _id;
}

async function backUp(name: string): Promise<{ folder: string; manifest: Manifest }> {
  const folder = join(base, name);
  return { folder, manifest: await writeBackup(service.client, folder, Date.now()) };
}

const bucketIdsOf = async (objectId: string): Promise<Binary[]> =>
  (
    await service.client
      .db()
      .collection('packedPackets')
      .find({ _oid: new ObjectId(objectId) })
      .toArray()
  ).map(({ _id }) => _id as unknown as Binary);

test('restores rows and buckets as they were, and rows alone of a step that is not committed', async () => {
  const objectId = await createHistory();
  await packHistory(database(), objectId, { toMs: START_MS + 49_000, bucketPackets: 20 });
  const rows = (await readStoredRows(database(), objectId)).slice(0, 30);
  await storePending(database(), { objectId, rows, replaces: null, mayGrow: true });
  const before = await bytesOf(database(), objectId);
  const { folder, manifest } = await backUp('exact');
  expect(manifest.exact).toBe(true);
  expect(countPacketsIn(manifest)).toBe(before.length);
  await restoreBackup(uri, folder, true);
  expect(await bytesOf(restored, objectId)).toEqual(before);
  const buckets = await restored.db
    .collection('packedPackets')
    .find({ _oid: new ObjectId(objectId) })
    .toArray();
  expect(buckets.map(({ n, isPending }) => [n, isPending])).toEqual([20, 20, 10].map((n) => [n, false]));
});

test('restores a backup that has no buckets, as older ones', async () => {
  const objectId = await createHistory();
  const before = await bytesOf(database(), objectId);
  const { folder, manifest } = await backUp('older');
  const files = manifest.files.filter(({ collection }) => collection !== 'packedPackets');
  await writeFile(join(folder, 'manifest.json'), JSON.stringify({ ...manifest, files }));
  await restoreBackup(uri, folder, true);
  expect(await bytesOf(restored, objectId)).toEqual(before);
  expect(await restored.db.collection('packedPackets').countDocuments()).toBe(0);
});

test('restores each packet once, and loses none, of a backup that was written while rows were packed', async () => {
  const objectId = await createHistory();
  const before = await bytesOf(database(), objectId);
  await packHistory(database(), objectId, { toMs: START_MS + 29_000, bucketPackets: 10 });
  const first = await backUp('first');
  // Of three buckets, the first becomes rows and the last one grows; other rows become buckets, and one of these grows, too.
  const [unpacked, , grows] = await bucketIdsOf(objectId);
  await unpackBucket(database(), objectId, unpacked as Binary);
  const pack = async (from: number, count: number, replaces: Binary | null) => {
    const rows = await readStoredRows(database(), objectId);
    const at = rows.findIndex(({ timeMs }) => timeMs === START_MS + from * 1_000);
    const packing = { objectId, rows: rows.slice(at, at + count), replaces, mayGrow: true };
    expect(await packRows(database(), packing)).toBe(true);
  };
  await pack(30, 15, grows as Binary);
  const rowsPart = await backUp('rows');
  await pack(45, 20, null);
  const later = await backUp('later');
  // Buckets of the beginning, rows of later on, and the buckets at the end.
  const folder = first.folder;
  const fileOf = ({ manifest }: { manifest: Manifest }, collection: string): BackupFile =>
    manifest.files.find((file) => file.collection === collection) as BackupFile;
  await copyFile(join(rowsPart.folder, 'packets.bson.gz'), join(folder, 'packets.bson.gz'));
  await copyFile(join(later.folder, 'packedPackets.bson.gz'), join(folder, 'packedPackets.later.bson.gz'));
  const files = [
    ...first.manifest.files.filter(({ collection }) => collection !== 'packets'),
    fileOf(rowsPart, 'packets'),
    { ...fileOf(later, 'packedPackets'), file: 'packedPackets.later.bson.gz' },
  ];
  await writeFile(join(folder, 'manifest.json'), JSON.stringify({ ...first.manifest, exact: false, files }));
  expect(JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8')).exact).toBe(false);
  await restoreBackup(uri, folder, true);
  expect(await bytesOf(restored, objectId)).toEqual(before);
});
