/** Series of packed history: out of the statistics and columns of buckets, as out of packets. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Binary, Double, ObjectId } from 'mongodb';
import { LIMITS } from '../../../src/core/limits.js';
import type { PlaceInOrder } from '../../../src/core/packet-order.js';
import { parseSeriesQuery } from '../../../src/history/series/query.js';
import { readSeries } from '../../../src/history/series.js';
import { BUCKETS } from '../../../src/packets/store/buckets.js';
import { readParts } from '../../../src/packets/store/history-parts.js';
import { packRows } from '../../../src/packets/store/packing.js';
import type { ReadStart } from '../../../src/packets/store/query.js';
import { type Database, databaseOf } from '../../../src/platform/mongo/driver/client.js';
import { connectDatabase } from '../../../src/platform/mongo/schema/connect.js';
import { useService } from '../../support/fixture.js';
import { HISTORY_START_MS, packHistory, readStoredRows, storeHistory } from '../../support/packed.js';

// Several groups of buckets, and of heads.
Object.assign(LIMITS, { bucketHeadsRead: 3, bucketsRead: 2 });
const service = useService();
let database: Database;

beforeAll(async () => {
  database = databaseOf((await connectDatabase(service.mongodbUri)).client);
});
afterAll(() => database.client.close());

const PACKETS = 1_001;
const END_MS = HISTORY_START_MS + (PACKETS - 1) * 1_000;

const fieldsOf = (nth: number) => ({
  speed: Math.round(Math.sin(nth / 40) * 1_000) / 10,
  ...(nth % 3 !== 0 && { fuel: 80 - nth / 97 }),
  door: nth % 7 < 3,
  ...(nth % 5 === 0 && { result: nth % 10 === 0 ? null : nth }),
  ...(nth > 700 && nth < 740 && { speed: new Double(Number.NaN) }),
  ...(nth % 11 === 0 && { mixed: nth % 22 === 0 ? 'off' : nth }),
  mode: ['a', 'b'][nth % 2],
  ...(nth < 340 && { early: nth }),
  deep: { rpm: nth },
  large: new Double(nth % 2 === 0 ? 1e300 : -1e300),
});

/** Numbers and booleans alone, and others among them. */
const ALL_PATHS = ['fuel,door,early,none', 'speed,result,large', 'speed,mixed,mode', 'fuel,deep.rpm', 'fuel,_ts'];
const QUERIES = [
  { points: 1 },
  { points: 2 },
  { points: 7 },
  { points: 2_000 },
  { points: 3, gap: '2 min' },
  { points: 300, gap: '10 s', fn: 'minmax,count,duration,time-weighted-avg,increase,p50' },
  { points: 2, fn: 'p50,sum' },
  { every: '5 min', points: null },
  { points: 5, fromMs: HISTORY_START_MS + 63_456, toMs: END_MS - 94_567 },
  { points: 4, fromMs: HISTORY_START_MS - 600_000, toMs: END_MS + 600_000, gap: '30 min' },
];

async function seriesOf(objectId: string, params: string, given: object) {
  const texts = { params, points: null, every: null, tz: null, fn: 'minmax,avg,sum,count', gap: null, wrap: null };
  const query = parseSeriesQuery({ ...texts, fromMs: null, toMs: null, ...given });
  const { starts, objects } = await readSeries(database, [objectId], { query, nowMs: END_MS + 60_000 });
  const columns = objects[0]?.columns.map((column) => column.results()?.map(([name, values]) => [name, [...values]]));
  return { starts: [...starts], columns: columns ?? [] };
}

type Results = Awaited<ReturnType<typeof seriesOf>>;

/** Sums are those of other additions; all else is the same. */
function expectSame(params: string, found: Results, expected: Results): void {
  expect(found.starts).toEqual(expected.starts);
  const paths = params.split(',');
  for (const [nth, column] of expected.columns.entries()) {
    for (const [place, [name, values]] of (column ?? []).entries()) {
      const got = found.columns[nth]?.[place]?.[1] as number[];
      const near = (values as number[]).map((value, at) => {
        const isSum = name === 'sum' || name === 'avg';
        const isNear = isSum && Math.abs((got[at] as number) - value) <= 1e-9 * Math.max(1, Math.abs(value));
        return isNear ? got[at] : value;
      });
      expect([paths[nth], name, got]).toEqual([paths[nth], name, near]);
    }
    expect([paths[nth], found.columns[nth] === undefined]).toEqual([paths[nth], column === undefined]);
  }
}

const LAYOUTS: Record<string, (objectId: string) => Promise<unknown>> = {
  'all but the latest': (objectId) => packHistory(database, objectId, { bucketPackets: 60 }),
  'with late rows inside of buckets': async (objectId) => {
    const rows = (await readStoredRows(database, objectId)).slice(0, -1).filter((_, nth) => nth % 170 !== 77);
    for (let at = 0; at < rows.length; at += 60) {
      const packing = { objectId, rows: rows.slice(at, at + 60), replaces: null, mayGrow: true };
      expect(await packRows(database, packing)).toBe(true);
    }
  },
};

test.each(Object.keys(LAYOUTS))('answers series as of packets, packed: %s', async (layout) => {
  const objectId = await storeHistory(database, PACKETS, fieldsOf);
  const asked = ALL_PATHS.flatMap((params) => QUERIES.map((query) => ({ params, query })));
  const rows: Results[] = [];
  for (const { params, query } of asked) rows.push(await seriesOf(objectId, params, query));
  await LAYOUTS[layout]?.(objectId);
  for (const [nth, { params, query }] of asked.entries()) {
    expectSame(params, await seriesOf(objectId, params, query), rows[nth] as Results);
  }
});

test('reads the heads of buckets alone for series of long intervals', async () => {
  const objectId = await storeHistory(database, PACKETS, fieldsOf);
  const query = { points: 1, fn: 'min,max,first,last,count' };
  const rows = await seriesOf(objectId, 'fuel,early', query);
  await packHistory(database, objectId, { bucketPackets: 300 });
  const damaged = {
    $set: { 'columns.fuel': new Binary(Buffer.alloc(9)), 'columns.early': new Binary(Buffer.alloc(9)) },
  };
  await database.db.collection(BUCKETS).updateMany({ _oid: new ObjectId(objectId) }, damaged);
  expect(await seriesOf(objectId, 'fuel,early', query)).toEqual(rows);
  await expect(seriesOf(objectId, 'fuel', { points: 2_000 })).rejects.toMatchObject({ status: 500 });
});

test('continues behind a part after a fault, with each packet once', async () => {
  const objectId = await storeHistory(database, PACKETS, fieldsOf);
  await packHistory(database, objectId, { bucketPackets: 100 });
  const whole = await countsIn(objectId, null);
  expect(whole.reduce((sum, { packets }) => sum + packets, 0)).toBe(PACKETS);
  for (const [nth, { last }] of whole.entries()) {
    if (last === null) continue;
    const rest = await countsIn(objectId, { ...last, isIncluded: false });
    expect(rest.reduce((sum, { packets }) => sum + packets, 0)).toBe(PACKETS - 100 * (nth + 1));
  }
});

/** The parts of a history, as columns. */
async function countsIn(objectId: string, start: ReadStart | null) {
  const wanted = { numbers: ['fuel'], isSummedUp: () => false, needsLastTime: false };
  const parts = readParts(database, { objectIds: [objectId], start, fields: ['time', '_ts', 'fuel'], ...wanted }, {});
  const found: { readonly packets: number; readonly last: PlaceInOrder | null }[] = [];
  for await (const part of parts) {
    if (part.kind === 'columns') found.push({ packets: part.times.length, last: part.last });
    else if (part.kind === 'packets') found.push({ packets: part.starts.length, last: part.last });
  }
  return found;
}
