/**
 * Packing changes no answer: what every reader of packets gives is recorded while all of them are rows, and compared byte for byte when
 * they are packed, in several layouts, and while they are packed and unpacked again. Long because there are many readers.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Binary, Double, Long, MongoClient, ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { BUCKETS, type KeyedRow } from '../../src/packets/store/buckets.js';
import { packRows, unpackBucket } from '../../src/packets/store/packing.js';
import { readPackets } from '../../src/packets/store/reader.js';
import { toPacketKey } from '../../src/platform/mongo/bson/packet-key.js';
import { type Database, databaseOf } from '../../src/platform/mongo/driver/client.js';
import { listPastPackets, readStoredPackets } from '../../src/webhooks/past-packets.js';
import { useService } from '../support/fixture.js';
import { packHistory, readStoredRows } from '../support/packed.js';
import { useReceiver, useWebhooks } from '../support/receiver.js';
import { roundsOf } from '../support/runs.js';
import { until } from '../support/until.js';

// Small batches and small memory, so that each answer is put together out of many.
Object.assign(LIMITS, {
  streamBatchPackets: 170,
  bucketSpansRead: 3,
  bucketsRead: 2,
  packedReadBytes: 40_000,
  evaluatedBytes: 20_000,
  historyPage: 130,
  webhookReplayCheckMs: 50,
});
/** At which time the service answers what is compared: intervals that end now are the same then. */
let recordedMs = 0;
let isRecording = false;
const now = (): number => (isRecording ? recordedMs : Date.now());
const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.1', OPS_PORT: '0' }, now });
const receiver = useReceiver();
const { createHandler } = useWebhooks(service, receiver);

const START = Date.UTC(2026, 0, 1);
const MINUTE_MS = 60_000;
const PACKETS = 1_200;
let database: Database;
let token: string;
/** Odd packets, usual ones, and those of the last hours. */
let odd: string;
let usual: string;
let recent: string;
let secret: string;
let ids: string[];

const chosenId = (nth: number): string => `c0ffee${nth.toString(16).padStart(18, '0')}`;

/** What a device may send, and a foreign writer may store. */
function fieldsOf(nth: number): object {
  const drives = nth % 200 < 150;
  return {
    lat: 48 + Math.min(nth % 200, 150) / 1e4,
    lon: 16 + nth / 1e6,
    speed: drives ? 36.5 : 0,
    ...(nth % 3 === 0 && { temperature: Math.round(Math.sin(nth / 9) * 1_000) / 100 }),
    ...(nth % 5 === 0 && { zero: new Double(-0), Öldruck: nth / 7, mode: ['a', 'b', 'ß'][nth % 3] }),
    ...(nth % 7 === 0 && { nested: { deep: [nth, { x: 'y"\n' }], n: nth % 11 }, door: nth % 2 === 0, none: null }),
    ...(nth % 11 === 0 && { big: Long.fromString('123456789012'), mixed: nth % 2 === 0 ? nth : String(nth) }),
    ...(nth === 400 && Object.fromEntries(Array.from({ length: 900 }, (_, field) => [`field${field}`, field / 3]))),
    ...(nth === 500 && { text: '😀'.repeat(2_000), empty: '', list: [] }),
    ...(nth % 50 === 49 && { '3303/0/5601': nth, 'a b': true, $odd: 1 }),
  };
}

async function store(objectId: string, numbers: readonly number[], timeOf: (nth: number) => number): Promise<string[]> {
  const object = new ObjectId(objectId);
  const names = numbers.map((nth) => (nth % 13 === 0 ? chosenId(nth) : new ObjectId().toHexString()));
  const documents = numbers.map((nth, place) => ({
    _id: toPacketKey(names[place] as string, object),
    // Every twentieth has arrived a week late.
    _ts: (timeOf(nth) + (nth % 20 === 19 ? 7 * 86_400_000 : 500)) * 1_000 + 2 * nth + Number(objectId === usual),
    time: timeOf(nth),
    online: nth % 17 !== 0,
    _oid: object,
    id: 'packed',
    _gid: new ObjectId('65f000000000000000000001'),
    ...(nth % 17 !== 0 && fieldsOf(nth)),
  }));
  await service.client
    .db()
    .collection('packets')
    .insertMany(documents as object[]);
  return names;
}

const upTo = (end: number): number[] => Array.from({ length: end }, (_, nth) => nth);
/** Some come in another order than that of their times, and three at a time are equal. */
const shuffled = upTo(PACKETS).sort((a, b) => ((a * 7) % 10) - ((b * 7) % 10) || a - b);
const timeOf = (nth: number): number => START + Math.floor(nth / 3) * MINUTE_MS;

beforeAll(async () => {
  token = await service.tokenOf('admin', 'correct horse battery');
  const create = async (id: string): Promise<string> =>
    (await service.admin('POST', 'objects', { id, name: id })).body._id;
  odd = await create('odd');
  usual = await create('usual');
  recent = await create('recent');
  ids = await store(odd, shuffled, timeOf);
  await store(usual, upTo(300), (nth) => START + nth * 45_000);
  const nowMs = Date.now();
  await store(recent, upTo(200), (nth) => nowMs - (200 - nth) * 5 * MINUTE_MS);
  const fields = ['speed', 'temperature', 'mode'];
  const link = { name: 'visitor', fields, history: '24 h' };
  secret = (await service.admin('POST', `objects/${recent}/links`, link)).body.secret;
  database = databaseOf(await new MongoClient(service.mongodbUri).connect());
  recordedMs = Date.now();
  before = await record();
});
afterAll(() => database?.client.close());

let before: Map<string, string>;

const INTERVAL = `from=${START + 17 * MINUTE_MS}&to=${START + 311 * MINUTE_MS}`;

function requests(): string[] {
  const packets = (query: string, id = odd): string => `objects/${id}/packets?${query}`;
  const lists = [
    'limit=10000',
    'limit=100',
    'limit=1',
    'sortBy=-time&limit=100',
    'sortBy=-time&limit=1000&offset=333',
    `${INTERVAL}&limit=500`,
    `${INTERVAL}&limit=500&sortBy=-time&offset=7`,
    `from=${START + 17 * MINUTE_MS + 1}&to=${START + 18 * MINUTE_MS - 1}`,
    `from=${START + 50 * MINUTE_MS}&to=${START + 50 * MINUTE_MS}`,
    `to=${START - 1}`,
    `from=${START + 10 ** 9}`,
    `after=${ids[5]}&limit=400`,
    `after=${ids[700]}&limit=50&only=speed`,
    `after=${chosenId(26)}&${INTERVAL}`,
    'after=ffffffffffffffffffffffff&limit=20',
    'only=speed,mode&limit=1000',
    'only=time&limit=1000',
    'only=_ts,zero&limit=1000',
    'only=nested.deep,speed,nested.n&limit=1000',
    'only=nested,nested.n&limit=100',
    'only=nothing&limit=50',
    'where.mode=ß&limit=1000',
    'where.mode=a,b&only=mode&sortBy=-time&limit=100&offset=20',
    'where.none=null&limit=100',
    'where.nested.n=3&only=nested.n,time',
    'where.zero=0&limit=100',
    'where.door=true&limit=100',
    'where.mixed=22&limit=100',
    `where._id=${ids[3]},${ids[900]},${chosenId(13)},${'e'.repeat(24)}`,
    `where.speed=36.5&${INTERVAL}&limit=90&offset=10`,
    'search=pack&limit=30&offset=200',
    'search=nowhere',
    'sortBy=temperature&limit=200',
    'sortBy=-temperature&limit=50&offset=25&only=mode',
    'sortBy=-nested.n&limit=100&only=nested.deep',
    'sortBy=_id&limit=100',
    'sortBy=-_ts&limit=300&offset=100',
    `sortBy=mode&where.door=true&${INTERVAL}&limit=40`,
    'sortBy=mixed&limit=1000',
    'meta=true',
    `meta=true&${INTERVAL}`,
    `meta=true&${INTERVAL}&where.mode=a&only=mode`,
    `meta=true&to=${START - 1}`,
    'meta=true&search=pack',
  ];
  const files = ['csv', 'ndjson', 'geojson', 'gpx', 'parquet'].flatMap((format) => [
    `format=${format}`,
    `format=${format}&${INTERVAL}&sortBy=-time&only=time,lat,lon,speed,mode`,
    `format=${format}&where.mode=ß&limit=30&offset=5`,
  ]);
  const ofObject = [
    `series?params=speed,temperature,zero,nested.n&${INTERVAL}&points=50`,
    `series?params=speed,temperature,door&points=2000&functions=avg,min,max,sum,count,first,last`,
    `series?params=*&${INTERVAL}&points=7`,
    `series?params=temp*&points=10&every=1h`,
    `series?params=speed,temperature,zero,door,mixed,none,nothing&points=4&fn=minmax,count`,
    `series?params=speed,temperature,zero,door,mode&points=3&fn=first,last,min,max,count&gap=1h`,
    `series?params=speed,_ts,nested.n&points=2&fn=count,max`,
    `series?params=speed,temperature&points=6&fn=minmax&${INTERVAL}`,
    `series?params=speed&every=1d&tz=Europe/Berlin&fn=minmax`,
    `track?${INTERVAL}`,
    'track',
    `events?${INTERVAL}&limit=200`,
    `events?${INTERVAL}&limit=10000`,
  ].map((query) => `objects/${odd}/${query}`);
  const others = [
    `series?objects=odd,usual,recent&params=speed&points=20&${INTERVAL}`,
    `events?from=${START}&to=${START + 10 ** 8}&limit=500`,
    `events?from=${START}&to=${START + 10 ** 8}&limit=50&objects=odd,usual&event=object-offline`,
    'objects?state=latest-of-each',
    'objects?limit=10',
    `objects/${odd}`,
    `reports/mileage?objects=odd,usual&from=2026-01-01&to=2026-01-03`,
    `reports/trips?objects=odd,usual&from=2026-01-01&to=2026-01-03`,
    ...[ids[0], ids[600], chosenId(26), chosenId(13 * 50), 'e'.repeat(24)].flatMap((id) => [
      `objects/${odd}/packets/${id}`,
      `objects/${odd}/packets/${id}?only=mode,nested.n`,
      `objects/${usual}/packets/${id}`,
    ]),
  ];
  return [
    ...lists.map((query) => packets(query)),
    ...files.map((query) => packets(query)),
    ...ofObject,
    ...others,
    packets('limit=1000', usual),
    packets('sortBy=-time&limit=20', recent),
  ];
}

const RULE = {
  object: 'odd',
  from: START,
  to: START + 500 * MINUTE_MS,
  rule: { name: 'cold', when: { param: 'temperature', op: '<', value: 0 } },
};

/** What an answer says where it begins to differ. */
function differenceOf(answer: string, expected: string): string {
  let at = 0;
  while (at < answer.length && answer[at] === expected[at]) at++;
  const around = (text: string): string => text.slice(Math.max(0, at - 60), at + 120);
  return `${around(answer)} is not ${around(expected)}`;
}

async function ask(path: string, init: RequestInit = {}, bearer = token): Promise<string> {
  const headers = { Authorization: `Bearer ${bearer}`, 'Content-Type': 'application/json' };
  const answer = await fetch(`${service.url}/api/v1/${path}`, { headers, ...init });
  const body = Buffer.from(await answer.arrayBuffer());
  const isText = !answer.headers.get('content-type')?.includes('parquet');
  const next = answer.headers.get('link') ?? '';
  return `${answer.status} ${answer.headers.get('content-type')} ${next}\n${body.toString(isText ? 'utf8' : 'hex')}`;
}

/** All answers by what was asked. */
async function record(): Promise<Map<string, string>> {
  isRecording = true;
  return recordAll().finally(() => {
    isRecording = false;
  });
}

async function recordAll(): Promise<Map<string, string>> {
  const answers = new Map<string, string>();
  for (const path of requests()) answers.set(path, await ask(path));
  answers.set('rules/test', await ask('rules/test', { method: 'POST', body: JSON.stringify(RULE) }));
  const view = (await service.as(null)('POST', 'shared', { secret })).body.token;
  expect(view).toEqual(expect.any(String));
  for (const path of ['shared/packets', 'shared/packets?limit=30', 'shared/series?params=speed&points=24']) {
    answers.set(path, await ask(path, {}, view));
  }
  answers.set('stored', JSON.stringify(await readAllStored()));
  answers.set('past', JSON.stringify(await readAllPast()));
  return answers;
}

async function readAllStored(): Promise<unknown[]> {
  const found: unknown[] = [];
  const interval = { fromMs: START, toMs: START + 10 ** 9, position: null };
  for await (const batch of readStoredPackets(database, [odd, usual, recent], interval)) {
    found.push(...batch.map(({ json, ...packet }) => ({ ...packet, json: json.toString() })));
  }
  return found;
}

async function readAllPast(): Promise<unknown[]> {
  const found: unknown[] = [];
  const interval = { fromMs: START, toMs: START + 10 ** 9 };
  for (let place = null as Parameters<typeof listPastPackets>[2]['place']; ; ) {
    const page = await listPastPackets(database, odd, { ...interval, place });
    found.push(...page.map(({ json, ...packet }) => ({ ...packet, json: json.toString() })));
    const last = page.at(-1);
    if (last === undefined || page.length < LIMITS.historyPage) return found;
    place = last;
  }
}

async function unpackAll(filter: object = {}): Promise<void> {
  const found = await database.db.collection(BUCKETS).find(filter).sort({ _id: 1 }).toArray();
  for (const { _id, _oid } of found) await unpackBucket(database, String(_oid), _id as never);
}

/** Packs what the layout chooses of the rows, so that the others lie between or inside the buckets. */
async function packChosen(objectId: string, isChosen: (nth: number) => boolean, bucketPackets: number): Promise<void> {
  const rows: KeyedRow[] = (await readStoredRows(database, objectId)).slice(0, -1).filter((_, nth) => isChosen(nth));
  for (let at = 0; at < rows.length; at += bucketPackets) {
    const some = rows.slice(at, at + bucketPackets);
    expect(await packRows(database, { objectId, rows: some, replaces: null, mayGrow: true })).not.toBe(false);
  }
}

const LAYOUTS: Record<string, () => Promise<unknown>> = {
  'all but the latest': async () => {
    for (const id of [odd, usual, recent]) await packHistory(database, id, { bucketPackets: 100 });
  },
  'in one bucket': async () => {
    await packHistory(database, odd);
    await packHistory(database, usual);
  },
  'the older half': () => packHistory(database, odd, { toMs: timeOf(PACKETS / 2), bucketPackets: 77 }),
  'the younger half': () => packChosen(odd, (nth) => nth > PACKETS / 2, 90),
  'with late rows inside of buckets': async () => {
    await packChosen(odd, (nth) => nth % 10 !== 3, 120);
    await packChosen(recent, (nth) => nth % 2 === 0, 30);
  },
  'with rows between buckets': () => packChosen(odd, (nth) => nth % 200 < 130, 130),
};

describe('byte for byte', () => {
  test.each(Object.keys(LAYOUTS))('answers the same, packed: %s', async (layout) => {
    await unpackAll();
    await LAYOUTS[layout]?.();
    expect(await database.db.collection(BUCKETS).countDocuments({ isPending: false })).toBeGreaterThan(0);
    const after = await record();
    expect([...after.keys()]).toEqual([...before.keys()]);
    const differing = [...after].filter(([path, answer]) => answer !== before.get(path));
    // The whole of it would be megabytes.
    const shown = differing.map(([path, answer]) => `${path}: ${differenceOf(answer, before.get(path) ?? '')}`);
    expect(shown).toEqual([]);
  });
});

test('replays packed packets to a webhook as it does rows', async () => {
  const replayed = async (): Promise<unknown[]> => {
    receiver.received.length = 0;
    const handler = await createHandler({ objects: ['usual'] });
    await service.admin('POST', `handlers/${handler._id}/replay`, { from: START, to: START + 10 ** 9 });
    await receiver.got(300);
    await until(async () => {
      const { body } = await service.admin('GET', `audit?where.entity=${handler._id}&where.action=webhook replayed`);
      return body.length === 1;
    });
    await service.admin('DELETE', `handlers/${handler._id}`);
    return receiver.received.map(({ body }) => body.data);
  };
  await unpackAll();
  const rows = await replayed();
  await packHistory(database, usual, { bucketPackets: 70 });
  expect(await replayed()).toEqual(rows);
});

test('meets each packet once while buckets replace rows, and rows buckets', async () => {
  await unpackAll();
  // Readers know that there are buckets: the job would wait until all of them do.
  await packHistory(database, usual);
  const paths = [
    `objects/${odd}/packets?limit=10000`,
    `objects/${odd}/packets?sortBy=-time&limit=700&offset=100`,
    `objects/${odd}/packets?format=ndjson`,
    `objects/${odd}/packets?meta=true&${INTERVAL}`,
    `objects/${odd}/packets?sortBy=temperature&limit=200`,
    `objects/${odd}/packets?where.mode=ß&limit=1000`,
    `objects/${odd}/packets/${ids[600]}`,
    `objects/${odd}/series?params=speed,temperature,zero,nested.n&${INTERVAL}&points=50`,
    `events?from=${START}&to=${START + 10 ** 8}&limit=500`,
  ];
  for (const path of paths) if (!before.has(path)) before.set(path, await ask(path));
  let isPacking = true;
  let cycles = 0;
  const packing = (async () => {
    for (; cycles < 4 * roundsOf(10); cycles++) {
      await packHistory(database, odd, { bucketPackets: 100 + 50 * (cycles % 5) });
      await unpackAll({ _oid: new ObjectId(odd) });
    }
  })().finally(() => {
    isPacking = false;
  });
  const wrong: string[] = [];
  let asked = 0;
  while (isPacking) {
    for (const path of paths) {
      asked++;
      const answer = await ask(path);
      if (answer !== before.get(path)) wrong.push(`${path}: ${differenceOf(answer, before.get(path) ?? '')}`);
    }
    // Without any service between, and in batches.
    let count = 0;
    for await (const { documents } of readPackets(database, { objectIds: [odd], fields: ['time'], batchPackets: 90 })) {
      count += documents.length;
    }
    if (count !== PACKETS) wrong.push(`${count} packets`);
  }
  await packing;
  expect(wrong).toEqual([]);
  expect(asked).toBeGreaterThan(paths.length);
});

test('names the interval of a damaged bucket to reads that need it, and to no others', async () => {
  await unpackAll();
  await packHistory(database, odd, { bucketPackets: 100 });
  const buckets = database.db.collection(BUCKETS);
  const bucket = await buckets.findOne({ _oid: new ObjectId(odd) }, { sort: { 'from.time': 1 }, skip: 5 });
  const { _id, from, to, columns } = bucket as unknown as Record<string, never> & {
    readonly from: { readonly time: number };
    readonly to: { readonly time: number };
    readonly columns: { readonly speed: { readonly buffer: Uint8Array } };
  };
  const speed = Buffer.from(columns.speed.buffer);
  speed[speed.length - 1] = (speed.at(-1) as number) ^ 1;
  await buckets.updateOne({ _id }, { $set: { 'columns.speed': new Binary(speed) } });
  const interval = `from=${from.time + MINUTE_MS}&to=${to.time - MINUTE_MS}`;
  const message = `the packed history from ${new Date(from.time).toISOString()} to ${new Date(to.time).toISOString()} is damaged`;
  for (const path of [`packets?${interval}`, `packets?${interval}&format=csv`, `series?params=speed&${interval}`]) {
    const { status, body } = await service.admin('GET', `objects/${odd}/${path}`);
    expect([path, status]).toEqual([path, 500]);
    expect(body.helper.message).toContain(message);
  }
  // Other intervals, other columns, and what the index tells.
  const others = [
    `to=${from.time - MINUTE_MS}&limit=1000`,
    `from=${to.time + MINUTE_MS}&sortBy=-time`,
    `${interval}&only=mode`,
  ];
  for (const query of [...others, `meta=true&from=${from.time - 1}&only=mode`]) {
    expect([query, (await service.admin('GET', `objects/${odd}/packets?${query}`)).status]).toEqual([query, 200]);
  }
  expect((await service.admin('GET', `objects/${odd}/series?params=temperature&${interval}`)).status).toBe(200);
});
