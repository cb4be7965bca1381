// Fills a database with the histories of a fleet as the service stores them, and packs them as its job does, without its pauses.
import { ObjectId } from 'mongodb';
import type { PlaceInOrder } from '../../src/core/packet-order.js';
import { DAY_MS } from '../../src/core/units.js';
import { planPacking } from '../../src/packed/plan.js';
import { readOldRows } from '../../src/packets/store/old-rows.js';
import { commitStep, type PendingStep, storePending } from '../../src/packets/store/packing.js';
import { PACKETS } from '../../src/packets/store/query.js';
import type { Database } from '../../src/platform/mongo/driver/client.js';
import { runRawCommand, sequenceOf } from '../../src/platform/mongo/driver/raw-command.js';
import { BEGIN_MS, objectId } from './data.js';
import { storedObject } from './fill.js';
import { createDataSets, givenId, type Sample, toRow } from './packed-data.js';
import { createRandom } from './random.js';

/** How many packets each object has, by its number: one has a fifth of all, some have a page, and all others as many. */
export interface Histories {
  readonly counts: readonly number[];
  /** When the last packet was sent; the first ones are of `BEGIN_MS`. */
  readonly endMs: number;
}

export const LONGEST = 0;
/** The objects with a page of 10,000 packets. */
export const PAGED = Array.from({ length: 20 }, (_, nth) => nth + 1);
export const PAGE_PACKETS = 10_000;

/** The objects send in turns: the packets of one of them are scattered among those of all others. */
const TURNS = PAGE_PACKETS;
const DAYS = 100;
const BATCH = 1_000;
const WRITES_AT_ONCE = 4;
const SAMPLES = 50_000;
const ARRIVAL_MS = 40;

/** About `packets` of `objects` in all, of the last days before now. The pages of few packets are shorter. */
export function toHistories(packets: number, objects: number): Histories {
  const longest = Math.round(packets / 5);
  const page = Math.min(PAGE_PACKETS, Math.round(packets / (2 * PAGED.length)));
  const others = Math.round((packets - longest - PAGED.length * page) / (objects - PAGED.length - 1));
  const counts = Array.from({ length: objects }, (_, nth) =>
    nth === LONGEST ? longest : PAGED.includes(nth) ? page : Math.max(others, 1),
  );
  return { counts, endMs: BEGIN_MS + DAYS * DAY_MS };
}

/** When an object has sent its packet with this number. */
export const timeOf = ({ counts, endMs }: Histories, nth: number, at: number): number =>
  BEGIN_MS + Math.floor((at * (endMs - BEGIN_MS)) / (counts[nth] as number));

/** In the order in which they were sent. */
function* rowsOf(histories: Histories): Generator<Buffer> {
  const random = createRandom(11);
  const samples = createDataSets(SAMPLES)[0]?.samples as readonly Sample[];
  const objects = histories.counts.map((_, nth) => new ObjectId(objectId(nth)));
  let counter = 0;
  for (let turn = 0; turn < TURNS; turn++) {
    for (const [nth, count] of histories.counts.entries()) {
      const due = (turns: number): number => Math.floor((turns * count) / TURNS);
      for (let at = due(turn); at < due(turn + 1); at++) {
        const time = timeOf(histories, nth, at);
        const arrivalMs = time + Math.round(ARRIVAL_MS * random() ** 3);
        const stampUs = arrivalMs * 1_000 + Math.floor(random() * 1_000);
        const sample = { ...(samples[(at + nth * 37) % SAMPLES] as Sample), time };
        yield toRow({ id: givenId(arrivalMs, counter++ % 2 ** 24), stampUs, sample }, objects[nth] as ObjectId);
      }
    }
  }
}

/** Stores the objects and their packets. Returns the number of packets. */
export async function fillHistories({ db }: Database, histories: Histories): Promise<number> {
  await db.collection('objects').insertMany(histories.counts.map((_, nth) => storedObject(nth)));
  const rows = rowsOf(histories);
  let stored = 0;
  const write = async (): Promise<void> => {
    for (let batch = nextOf(rows); batch.length > 0; batch = nextOf(rows)) {
      await runRawCommand(db, { insert: PACKETS, documents: sequenceOf('documents', batch), ordered: false });
      stored += batch.length;
    }
  };
  await Promise.all(Array.from({ length: WRITES_AT_ONCE }, write));
  return stored;
}

function nextOf(rows: Generator<Buffer>): Buffer[] {
  const batch: Buffer[] = [];
  while (batch.length < BATCH) {
    const { value, done } = rows.next();
    if (done) break;
    batch.push(value);
  }
  return batch;
}

/**
 * Packs all histories but the last packets of each, as the job does: some buckets of each object are stored, and replace their rows in the
 * order of time. Returns the number of packed packets.
 */
export async function packHistories(database: Database, histories: Histories): Promise<number> {
  let left: readonly Turn[] = histories.counts.map((_, nth) => ({ id: objectId(nth), after: null }));
  let packed = 0;
  while (left.length > 0) {
    const waiting: Stored[] = [];
    const next: Turn[] = [];
    for (const turn of left) {
      const after = await storeNext(database, turn, waiting);
      if (after !== null) next.push({ ...turn, after });
    }
    waiting.sort((one, other) => one.firstMs - other.firstMs);
    for (const { step } of waiting) packed += (await commitStep(database, step))?.packets ?? 0;
    left = next;
  }
  return packed;
}

/** An object, and the place after which its rows are not packed. */
interface Turn {
  readonly id: string;
  readonly after: PlaceInOrder | null;
}

interface Stored {
  readonly step: PendingStep;
  readonly firstMs: number;
}

/** Stores the next buckets of an object. Returns the place after which its other rows are; null after the last ones. */
async function storeNext(database: Database, { id, after }: Turn, waiting: Stored[]): Promise<PlaceInOrder | null> {
  const nowMs = Date.now();
  const { rows, areAll, last } = await readOldRows(database, { objectId: id, toMs: nowMs, after });
  // The latest packet stays a row.
  const old = areAll ? rows.slice(0, -1) : rows;
  const plan = planPacking({ rows: old, areAll, spans: [], nowMs, packAfterMs: DAY_MS });
  for (const { rows } of plan) {
    const step = await storePending(database, { objectId: id, rows, replaces: null });
    if (step !== null) waiting.push({ step, firstMs: rows[0]?.timeMs ?? 0 });
  }
  return areAll ? null : (plan.at(-1)?.rows.at(-1) ?? last);
}
