/**
 * The service is killed, and once the database, at each step of packing and unpacking. A new instance goes on: every packet is listed
 * exactly once and byte for byte as before, and copies of packets are recognized.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MongoClient, ObjectId } from 'mongodb';
import { callApi, logIn } from '../support/api-call.js';
import { ADMIN } from '../support/fixture.js';
import { type HeldCommands, type Holding, holdCommands } from '../support/held-commands.js';
import { type Instance, startInstance } from '../support/instance.js';
import { endLease } from '../support/leases.js';
import { type Member, type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import { roundsOf } from '../support/runs.js';
import { until } from '../support/until.js';

const START_MS = Date.UTC(2026, 0, 1);
/** A full bucket, one that is not full, and the latest packet, which stays a row. */
const PACKETS = 1_151;
const REMOVED = 10;
const WAIT_MS = 60_000;
const ROUNDS = Array.from({ length: roundsOf(5) }, (_, nth) => nth);
/** Packing and removals need not take long. What a test holds back is not given up and tried again meanwhile. */
const limits = {
  databaseOperationMs: 10 * WAIT_MS,
  packingSettleMs: 500,
  bucketsKnownMs: 100,
  packingPauseMs: 200,
  packingPacketsPerSecond: 1_000_000,
  removalCheckMs: 200,
};

let set: ReplicaSet;
let primary: Member;
let instance: Instance;
let client: MongoClient;
let token: string;

beforeAll(async () => {
  set = await startReplicaSet({ members: 1 });
  primary = await set.primary();
  instance = await startInstance(set.uri('vigil'), { env: { PACK_AFTER: '1s' }, limits });
  client = await new MongoClient(set.uri('vigil')).connect();
  token = await logIn(instance.url, ADMIN);
});
afterAll(async () => {
  await instance?.stop();
  await client?.close();
  await set?.stop();
});

const call = (method: string, path: string, body?: object) => callApi(instance.url, token, method, path, body);
const hold = (holding: Omit<Holding, 'database'>): Promise<HeldCommands> =>
  holdCommands(primary, { database: 'vigil', ...holding });

async function exportAll(id: string): Promise<string[]> {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`${instance.url}/api/v1/objects/${id}/packets?format=ndjson`, { headers });
  return (await response.text()).trimEnd().split('\n');
}

interface History {
  readonly id: string;
  readonly _oid: ObjectId;
  readonly sent: readonly object[];
}

/** Every second packet has an `_id` that its device chose. */
async function createHistory(id: string): Promise<History> {
  const { body } = await call('POST', 'objects', { id, name: id });
  const sent = Array.from({ length: PACKETS }, (_, nth) => ({
    ...(nth % 2 === 0 && { _id: new ObjectId().toHexString() }),
    time: START_MS + nth * 1_000,
    speed: nth / 10,
    text: `gear ${nth % 5}`,
  }));
  expect((await call('POST', `objects/${id}/packets`, sent)).status).toBe(200);
  return { id, _oid: new ObjectId(body._id as string), sent };
}

const countRows = ({ _oid }: History): Promise<number> => client.db().collection('packets').countDocuments({ _oid });
const countBuckets = ({ _oid }: History, isPending: boolean): Promise<number> =>
  client.db().collection('packedPackets').countDocuments({ _oid, isPending });

/** Starts the service again, which need not wait until the transaction and the leases of the killed one expire. */
async function restart(given = limits): Promise<void> {
  await primary.command({ killAllSessions: [] });
  await Promise.all((['packing', 'removals'] as const).map((name) => endLease(client.db(), name)));
  await instance.start(given);
}

const packed = (history: History): Promise<void> =>
  until(
    async () => (await countRows(history)) === 1 && (await countBuckets(history, true)) === 0,
    'all packets but the latest to be packed',
    WAIT_MS,
  );

async function checkHistory(history: History, before: readonly string[]): Promise<void> {
  const copies = history.sent.filter((packet) => '_id' in packet);
  expect(await exportAll(history.id)).toEqual(before);
  await packed(history);
  expect(await exportAll(history.id)).toEqual(before);
  expect((await call('POST', `objects/${history.id}/packets`, copies)).body).toMatchObject({ count: copies.length });
  expect(await exportAll(history.id)).toEqual(before);
}

const steps: readonly [string, Omit<Holding, 'database'>][] = [
  ['before a bucket is stored', { command: 'insert', collection: 'packedPackets' }],
  ['before the rows are removed', { command: 'delete', collection: 'packets' }],
  ['before the buckets count', { command: 'update', collection: 'packedPackets' }],
  ['before the transaction ends', { command: 'commitTransaction' }],
];

/** Each case, with the number of the round. */
const inRounds = <T>(all: readonly (readonly [string, T])[]): [string, number, T][] =>
  ROUNDS.flatMap((round) => all.map(([name, one]): [string, number, T] => [name, round, one]));

test.each(inRounds(steps))(
  'packs every packet once after the service was killed %s, in round %i',
  async (_name, round, holding) => {
    const held = await hold(holding);
    const history = await createHistory(`${holding.command}-${round}`);
    const before = await exportAll(history.id);
    expect(before).toHaveLength(PACKETS);
    await held.entered();
    await instance.kill();
    await held.end();
    expect(await countBuckets(history, false)).toBe(0);
    expect((await countBuckets(history, true)) > 0).toBe(holding.command !== 'insert');
    await restart();
    await checkHistory(history, before);
  },
);

/** In the first one, buckets wait for as long as this test may take to see them. */
const moments: [moment: string, { isPending: boolean; packingSettleMs: number }][] = [
  ['while the buckets wait', { isPending: true, packingSettleMs: 10 * WAIT_MS }],
  ['when the buckets have taken the place of the rows', { isPending: false, packingSettleMs: limits.packingSettleMs }],
];

test.each(inRounds(moments))(
  'packs every packet once after the service was killed %s, in round %i',
  async (moment, round, { isPending, packingSettleMs }) => {
    await instance.kill();
    await restart({ ...limits, packingSettleMs });
    const held = await hold({ command: 'insert', collection: 'packedPackets' });
    const history = await createHistory(`moment-${moment.length}-${round}`);
    const before = await exportAll(history.id);
    await held.entered();
    await held.end();
    await until(async () => (await countBuckets(history, isPending)) > 0, moment, WAIT_MS);
    await instance.kill();
    await restart();
    await checkHistory(history, before);
  },
);

test.each(ROUNDS)(
  'packs every packet once in round %i after the database was killed within the transaction',
  async (round) => {
    const held = await hold({ command: 'update', collection: 'packedPackets' });
    const history = await createHistory(`database-${round}`);
    const before = await exportAll(history.id);
    await held.entered();
    await primary.kill();
    await primary.start();
    await set.whole();
    const isBack = async () => (await call('GET', 'objects')).status === 200;
    await until(isBack, 'the service to answer 200', WAIT_MS);
    await checkHistory(history, before);
  },
);

const unpackings: readonly Omit<Holding, 'database'>[] = [
  { command: 'delete', collection: 'packedPackets' },
  { command: 'insert', collection: 'packets' },
  { command: 'commitTransaction' },
];

test.each(ROUNDS)(
  'unpacks every packet once in round %i where the service was killed at each step of it',
  async (round) => {
    const history = await createHistory(`unpacked-${round}`);
    await packed(history);
    let left = await exportAll(history.id);
    let kept = history.sent;
    for (const [nth, holding] of unpackings.entries()) {
      const first = 500 - nth * REMOVED;
      const [fromMs, toMs] = [first, first + REMOVED - 1].map((second) => START_MS + second * 1_000);
      const isKept = (time: number): boolean => time < (fromMs as number) || time > (toMs as number);
      const held = await hold(holding);
      const removal = await call('DELETE', `objects/${history.id}/packets?from=${fromMs}&to=${toMs}`);
      expect(removal.body.status).toBe('queued');
      await held.entered();
      await instance.kill();
      await held.end();
      expect(await countRows(history)).toBe(1);
      await restart();
      const isRemoved = async () => (await exportAll(history.id)).length <= PACKETS - (nth + 1) * REMOVED;
      await until(isRemoved, 'the packets to be removed', WAIT_MS);
      left = left.filter((line) => isKept(JSON.parse(line).time));
      kept = kept.filter((packet) => isKept((packet as { time: number }).time));
      await checkHistory({ ...history, sent: kept }, left);
    }
  },
);
