/** An export during which packets are removed is complete only if it contains all of them that it should. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Document, ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { type ExportPiece, type ExportSelection, exportPackets } from '../../src/history/exports/export.js';
import { createEncoder } from '../../src/history/exports/formats.js';
import type { ExportFormat } from '../../src/packets/export-format.js';
import { removePacketsOf } from '../../src/packets/store/removal.js';
import { toPacketKey } from '../../src/platform/mongo/bson/packet-key.js';
import type { Database } from '../../src/platform/mongo/driver/client.js';
import { connectDatabase } from '../../src/platform/mongo/schema/connect.js';
import { testUri } from '../support/fixture.js';

const BATCH = LIMITS.exportBatchPackets;
const PACKETS = 3 * BATCH;
let database: Database;

beforeAll(async () => {
  database = await connectDatabase(testUri());
});
afterAll(async () => {
  await database.db.dropDatabase();
  await database.client.close();
});

async function storePackets(): Promise<string> {
  const _oid = new ObjectId();
  const packets = Array.from({ length: PACKETS }, (_, nth): Document => {
    return { _id: toPacketKey(new ObjectId().toHexString(), _oid), _ts: nth, time: nth, _oid, nth };
  });
  await database.db.collection('packets').insertMany(packets);
  return String(_oid);
}

const ALL: ExportSelection = {
  fromMs: null,
  toMs: null,
  filters: [],
  search: null,
  only: null,
  offset: 0,
  limit: null,
  after: null,
  sort: null,
};
const CSV = { isForSpreadsheet: false, separator: ',', decimalSign: '.' } as const;
const OPTIONS = { only: null, declared: new Map(), name: 'x', gapMs: 1, csv: CSV };

/** Exports the packets, and removes some after the first piece. Returns the last piece. */
async function exportWhile(
  selection: Partial<ExportSelection>,
  remove: (objectId: string) => Promise<unknown>,
  format: ExportFormat = 'ndjson',
) {
  const objectId = await storePackets();
  const encoder = createEncoder(format, OPTIONS);
  const ending = new AbortController().signal;
  let last: ExportPiece | undefined;
  for await (const piece of exportPackets(database, objectId, { ...ALL, ...selection }, { encoder, ending })) {
    if (last === undefined) await remove(objectId);
    last = piece;
  }
  return last as ExportPiece;
}

const between = (from: number, to: number) => (objectId: string) =>
  removePacketsOf(database, { objectId, which: { time: { from, to } } });

test.each<[string, Partial<ExportSelection>, (objectId: string) => Promise<unknown>]>([
  ['packets that it has not read', {}, between(BATCH + 5, BATCH + 6)],
  ['its last packet', {}, between(PACKETS - 1, PACKETS - 1)],
  ['all packets of the object', {}, between(0, PACKETS)],
  ['unread packets, newest first', { sort: { path: 'time', descending: true } }, between(1, 2)],
  [
    'more packets than marks tell apart',
    {},
    async (objectId) => {
      for (let nth = 0; nth <= LIMITS.removalsMarked; nth++) await between(nth, nth)(objectId);
    },
  ],
])('does not end as complete after the removal of %s', async (_, selection, remove) => {
  const { error } = await exportWhile(selection, remove);
  expect([error?.status, error?.help]).toEqual([409, 'packets were removed during the export; ask for it again']);
});

test.each<[string, Partial<ExportSelection>, (objectId: string) => Promise<unknown>]>([
  ['no packet', {}, async () => undefined],
  ['packets that it has read', {}, between(0, 100)],
  [
    'packets that it has read, newest first',
    { sort: { path: 'time', descending: true } },
    between(PACKETS - 9, PACKETS),
  ],
  ['packets of another interval', { toMs: 2 * BATCH }, between(2 * BATCH + 1, PACKETS)],
  ['packets beyond its limit', { limit: BATCH }, between(PACKETS - 9, PACKETS)],
  ['packets of another object', {}, async () => between(0, PACKETS)(await storePackets())],
])('ends as complete after the removal of %s', async (_, selection, remove) => {
  expect((await exportWhile(selection, remove)).error).toBeNull();
});

test('ends Parquet without what would make it a file, and with the reason', async () => {
  const end = async (remove: Parameters<typeof exportWhile>[1]) =>
    (await exportWhile({}, remove, 'parquet')).body.toString('latin1');
  expect(await end(async () => undefined)).toMatch(/PAR1$/);
  expect(await end(between(PACKETS - 1, PACKETS - 1))).toMatch(
    /\n#incomplete: \d+: packets were removed during the export; ask for it again\n$/,
  );
});
