/** Past events of many objects and packets: complete and in order over many pages, and at a bounded cost in the database. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { type Document, MongoClient, ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { PAST_EVENT_NAMES, type PastEventName, type PastPlace } from '../../src/history/past-event.js';
import { listPastEvents } from '../../src/history/past-events.js';
import { readPastUpdates } from '../../src/history/past-updates.js';
import { toPacketKey } from '../../src/platform/mongo/bson/packet-key.js';
import { type Database, databaseOf } from '../../src/platform/mongo/driver/client.js';
import { useService } from '../support/fixture.js';

const beforeCreationMs = Date.now() - LIMITS.pastClockMs;
const service = useService();
const OBJECTS = 230;
const PACKETS_EACH = 40;
const COMMANDS_EACH = 4;
const BEGIN_MS = Date.UTC(2025, 0, 1);
const STEP_MS = 60_000;
const MIDDLE_MS = BEGIN_MS + (PACKETS_EACH / 2) * STEP_MS;
const LIMIT = 10;
const { pastPackets, pastUpdatesMs } = LIMITS;
const objectIds = Array.from({ length: OBJECTS }, () => new ObjectId().toHexString());
const commands: Document[] = [];
let database: Database;

beforeAll(async () => {
  const client = await new MongoClient(service.mongodbUri, { monitorCommands: true }).connect();
  client.on('commandStarted', ({ command }) => commands.push(command));
  database = databaseOf(client);
  await database.db.collection<Document>('packets').insertMany(createPackets());
  await database.db.collection('commands').insertMany(createCommands());
});

afterAll(() => database.client.close());

beforeEach(() => {
  Object.assign(LIMITS, { pastPackets, pastUpdatesMs });
  commands.splice(0);
});

/** Interleaved, as a fleet sends them; one in 90 reports only presence. Several objects send in the same millisecond. */
function createPackets(): Document[] {
  let number = 0;
  return Array.from({ length: PACKETS_EACH }, (_, step) =>
    objectIds.map((objectId, nth) => {
      const _oid = new ObjectId(objectId);
      const time = BEGIN_MS + step * STEP_MS + (nth % 30);
      const _id = toPacketKey(new ObjectId().toHexString(), _oid);
      const measured = ++number % 90 === 0 ? {} : { speed: nth };
      return { _id, _ts: time * 1_000 + nth, time, online: number % 180 !== 0, _oid, id: `past-${nth}`, ...measured };
    }),
  ).flat();
}

/** Ended in another order than created, several within one millisecond, some in that of their creation. */
function createCommands(): Document[] {
  return objectIds.flatMap((objectId, nth) =>
    Array.from({ length: COMMANDS_EACH }, (_, step) => {
      const time = BEGIN_MS + step * 10 * STEP_MS + (nth % 7);
      const status = ['done', 'failed', 'expired', 'queued'][(nth + step) % 4] as string;
      const times = { queued: time, ...(status !== 'queued' && { [status]: time + ((nth * 37) % 50) * STEP_MS }) };
      return { _id: new ObjectId(), object: new ObjectId(objectId), command: 'open', status, times, time };
    }),
  );
}

const ALL = PAST_EVENT_NAMES.filter((name) => !/update|created|removed/.test(name));

interface Wanted {
  readonly objects?: number;
  readonly fromMs?: number;
  readonly toMs?: number;
  readonly names?: readonly PastEventName[];
  readonly after?: PastPlace | null;
  readonly limit?: number;
}

const list = ({
  objects = OBJECTS,
  fromMs = 0,
  toMs = Date.now(),
  names = ALL,
  after = null,
  limit = LIMIT,
}: Wanted) => {
  const subject = { objectIds: objectIds.slice(0, objects), isAll: false, addresses: [] };
  return listPastEvents(database, subject, { fromMs, toMs, names: new Set(names), after, limit });
};

/** The plan of each query since the last test: what it examined, and its stages. */
async function explainQueries(): Promise<{ examined: number; stages: string }[]> {
  const queries = commands.filter(({ find, aggregate }) => /packets|commands/.test(find ?? aggregate));
  return Promise.all(
    queries.map(async ({ $db, lsid, $clusterTime, maxTimeMS, ...query }) => {
      const { executionStats } = await database.db.command({ explain: query, verbosity: 'executionStats' });
      const plan = JSON.stringify(executionStats);
      const counts = [...plan.matchAll(/"total(?:Keys|Docs)Examined":(\d+)/g)].map(([, count]) => Number(count));
      const stages = [...plan.matchAll(/"stage":"(\w+)"/g)].map(([, stage]) => stage as string);
      return { examined: Math.max(...counts), stages: [...new Set(stages)].sort().join(' ') };
    }),
  );
}

const PLACE = { timeMs: MIDDLE_MS, stampUs: MIDDLE_MS * 1_000, id: '0'.repeat(24) };

describe('a page', () => {
  test.each<[what: string, wanted: Wanted]>([
    ['a long interval of many objects', {}],
    ['a short interval in the middle', { fromMs: MIDDLE_MS, toMs: MIDDLE_MS + 1 }],
    ['the interval after a former page', { after: PLACE }],
    ['three objects of many', { objects: 3 }],
    ['one object', { objects: 1 }],
    ['one object after a former page', { objects: 1, after: PLACE }],
    ['outcomes of commands', { names: ['object-command-res', 'object-command-err'] }],
  ])('examines little more than it returns for %s', async (_, wanted) => {
    await list(wanted);
    const plans = await explainQueries();
    expect(plans.length).toBeGreaterThan(0);
    // Of each object, also the entries at both ends of the interval.
    for (const { examined, stages } of plans) {
      expect(examined).toBeLessThanOrEqual(LIMIT + 1 + 3 * LIMITS.pastObjectsAtOnce);
      expect(stages).not.toContain('COLLSCAN');
    }
  });

  test('reads a bounded number of packets when few of them match', async () => {
    Object.assign(LIMITS, { pastPackets: 900 });
    const { events, next } = await list({ names: ['object-offline'], limit: 1_000 });
    const examined = (await explainQueries()).map((plan) => plan.examined);
    expect(examined.reduce((sum, count) => sum + count)).toBeLessThanOrEqual(900 + OBJECTS);
    expect(events.length).toBeLessThan(1_000);
    expect(next).not.toBeNull();
  });
});

describe('all pages', () => {
  test.each<[what: string, wanted: Wanted & { packets?: number }]>([
    ['of every event', { limit: 911 }],
    ['of presence', { names: ['object-online', 'object-offline'], limit: 17, packets: 900 }],
    ['of packets without presence', { names: ['object-packet'], limit: 1_000, packets: 3_000 }],
    ['of commands', { names: ['object-command-req', 'object-command-res', 'object-command-err'], limit: 71 }],
    ['of outcomes in one group of objects', { names: ['object-command-err'], limit: 3, objects: 90 }],
  ])('contain each event once, in order: %s', async (_, { packets = pastPackets, ...wanted }) => {
    Object.assign(LIMITS, { pastPackets: packets });
    const found: string[] = [];
    for (let after: PastPlace | null = null, isFirst = true; isFirst || after !== null; isFirst = false) {
      const page = await list({ ...wanted, after });
      found.push(...page.events.map(({ json }) => String(json)));
      after = page.next;
    }
    const times = found.map((json) => Number(JSON.parse(json).time));
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(new Set(found).size).toBe(found.length);
    expect(found).toHaveLength(countOf(wanted));
  });

  /** The events of these names among what was stored. */
  function countOf({ names = ALL, objects = OBJECTS }: Wanted): number {
    const of = new Set(objectIds.slice(0, objects));
    const packets = createPackets()
      .filter(({ _oid }) => of.has(String(_oid)))
      .map(({ speed, online }) =>
        speed !== undefined ? 'object-packet' : online ? 'object-online' : 'object-offline',
      );
    const ends: Record<string, string> = { done: 'res', failed: 'err', expired: 'err' };
    const requests = createCommands()
      .filter(({ object }) => of.has(String(object)))
      .flatMap(({ status }) => ['req', ends[status] ?? []].flat().map((end) => `object-command-${end}`));
    return [...packets, ...requests].filter((name) => names.some((wanted) => wanted === name)).length;
  }
});

describe('the oplog', () => {
  test('is read from the creation of the database on, not from its own beginning', async () => {
    const startsOf = async (interval: { fromMs: number; toMs: number }): Promise<number[]> => {
      commands.splice(0);
      await readPastUpdates(
        database,
        { ...interval, limit: LIMIT },
        () => true,
        () => interval.fromMs,
      );
      const starts = commands.map(({ pipeline }) => pipeline?.[0].$changeStream?.startAtOperationTime);
      return starts.filter((start) => start !== undefined).map(({ t }) => t);
    };
    const [atS, ...others] = await startsOf({ fromMs: 0, toMs: Date.now() });
    expect(atS).toBeGreaterThanOrEqual(Math.floor(beforeCreationMs / 1_000));
    expect(others).toEqual([]);
    expect(await startsOf({ fromMs: 0, toMs: beforeCreationMs - 1 })).toEqual([]);
  });

  test('is read in steps though no object changed, and a page that ends early names the next one', async () => {
    const fromMs = Date.now() - 1_000;
    const processors = database.db.collection<{ _id: string; until: Date }>('processors');
    // As an instance renews its record.
    for (let nth = 0; nth < 3 * LIMITS.pastUpdatesPage; nth++)
      await processors.updateOne({ _id: 'past' }, { $set: { until: new Date(nth) } }, { upsert: true });
    const isRead = ({ getMore }: Document): boolean => getMore !== undefined;
    commands.splice(0);
    const interval = { fromMs, toMs: Date.now() + 60_000, limit: LIMIT };
    const whole = await readPastUpdates(
      database,
      interval,
      () => true,
      () => fromMs,
    );
    expect(whole).toEqual({ changes: [], readToMs: null });
    expect(commands.filter(isRead).length).toBeGreaterThan(3);
    Object.assign(LIMITS, { pastUpdatesMs: 0 });
    await expect(
      readPastUpdates(
        database,
        interval,
        () => true,
        () => fromMs + 5_000,
      ),
    ).resolves.toEqual({
      changes: [],
      readToMs: fromMs + 4_000,
    });
  });
});
