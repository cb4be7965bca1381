/**
 * Streams the packets of an object as BSON batches, ordered by `time`, then `_ts`. Memory is bounded by one batch. A stream
 * survives an election: it continues after the last packet that it has yielded.
 */

import { ApiError } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import type { PlaceInOrder } from '../core/packet-order.js';
import { clock } from '../platform/clock.js';
import { readNumber } from '../platform/mongo/bson/numbers.js';
import type { BatchOptions } from '../platform/mongo/bson/raw-batches.js';
import { BSON_TYPES, findValue, PACKET_KEY } from '../platform/mongo/bson/reader.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { isTransientError } from '../platform/mongo/driver/errors.js';
import { runList } from '../platform/mongo/driver/list-queue.js';
import { type HistoryPart, type PartReading, readParts, toPart } from './store/history-parts.js';
import { LATEST_FIRST, type PacketQuery, type PacketReading } from './store/query.js';
import { readPackets } from './store/reader.js';

const { BINARY, OBJECT_ID } = BSON_TYPES;
/** The size of a packet's key in BSON: the header of binary data, and the key. */
const KEY_BYTES = 5 + PACKET_KEY.BYTES;

export interface PacketStreaming extends PacketQuery {
  /** The fields of each packet beside `_id`, `time` and `_ts`; null for all. */
  readonly fields: readonly string[] | null;
  readonly isDescending?: boolean;
  /** The largest number of packets in a batch. */
  readonly batchPackets?: number;
  /** Whether the next batch is read while the caller works on the last one. */
  readonly readsAhead?: boolean;
}

/** Packets: their memory, and the offset of each. */
export interface PacketBatch {
  readonly memory: Buffer;
  readonly starts: readonly number[];
}

/** The position of a stream: time and stamp of the last packet, and the keys of all yielded packets with both; none if no others have both. */
interface Place extends PlaceInOrder {
  readonly keys: readonly Buffer[];
}

/**
 * Reads in batches; each batch waits in the fair queue and is charged to the caller. Throws the abort reason when the client has
 * left, and 503 when the database stays unavailable.
 */
export function streamPackets(database: Database, reading: PacketStreaming): AsyncGenerator<PacketBatch> {
  const { isDescending = false, ...query } = reading;
  const sort = isDescending ? LATEST_FIRST : null;
  return stream(database, query, async function* (from, options) {
    for await (const batch of readPackets(database, { ...from, sort }, options)) yield toPart(batch);
  });
}

export interface PartStreaming extends Pick<PacketStreaming, 'objectIds' | 'time'> {
  /** The fields whose numbers are wanted. */
  readonly fields: readonly string[];
  readonly isSummedUp: PartReading['isSummedUp'];
  readonly needsLastTime: boolean;
}

/** The same in ascending order of time, where packets are packed as columns of numbers, or as statistics of these. */
export function streamParts(
  database: Database,
  { isSummedUp, needsLastTime, ...query }: PartStreaming,
): AsyncGenerator<HistoryPart> {
  const wanted = { numbers: query.fields, isSummedUp, needsLastTime };
  return stream(database, { ...query, readsAhead: true }, (from, options) =>
    readParts(database, { ...from, ...wanted }, options),
  );
}

type Reading = Omit<PacketReading, 'sort'> & { readonly batchPackets: number };
type Read<Part> = (reading: Reading, options: BatchOptions) => AsyncGenerator<Part>;

async function* stream<Part extends HistoryPart>(
  database: Database,
  reading: Omit<PacketStreaming, 'isDescending'>,
  read: Read<Part>,
): AsyncGenerator<Part> {
  let place: Place | null = null;
  let failingSinceMs: number | null = null;
  for (;;) {
    try {
      for await (const found of readAfter(database, reading, { place, failingSinceMs, read })) {
        const part: Part = place === null ? found : withoutYielded(found, place);
        place = placeAfter(part, place);
        failingSinceMs = null;
        if (part.kind !== 'packets' || part.starts.length > 0) yield part;
      }
      return;
    } catch (error) {
      if (!isRetryable(error)) throw error;
      failingSinceMs ??= clock.steadyMs();
      if (leftMs(failingSinceMs) <= LIMITS.databaseRetryMs) throw error;
      await clock.wait(LIMITS.databaseRetryMs);
    }
  }
}

/** A 503 without a cause is a refusal of our own queues, not a failure of the database. */
const isRetryable = (error: unknown): boolean =>
  isTransientError(error) && !(error instanceof ApiError && error.cause === undefined);

const leftMs = (failingSinceMs: number): number => LIMITS.streamPatienceMs - (clock.steadyMs() - failingSinceMs);

function readAfter<Part>(
  database: Database,
  {
    fields,
    batchPackets = LIMITS.streamBatchPackets,
    readsAhead = false,
    ...query
  }: Omit<PacketStreaming, 'isDescending'>,
  {
    place,
    failingSinceMs,
    read,
  }: { readonly place: Place | null; readonly failingSinceMs: number | null; readonly read: Read<Part> },
): AsyncGenerator<Part> {
  // The packets at the place itself are read again: a filter cannot exclude the yielded ones among equal times and stamps.
  const after = place && { ...place, isIncluded: place.keys.length > 0 };
  const reading = {
    ...query,
    start: after ?? query.start ?? null,
    fields: fields && ['time', '_ts', ...fields],
    batchPackets,
  };
  const withinMs =
    failingSinceMs === null ? LIMITS.databaseOperationMs : Math.max(1, Math.floor(leftMs(failingSinceMs)));
  const schedule = <T>(read: (reader: Database) => Promise<T>): Promise<T> => runList([database], 'batch', read);
  return read(reading, { withinMs, schedule, readsAhead });
}

const isAt = ({ memory }: PacketBatch, start: number, { timeMs, stampUs }: PlaceInOrder): boolean =>
  readNumber(memory, start, 'time') === timeMs && readNumber(memory, start, '_ts') === stampUs;

/** A copy, so that it does not keep the batch's memory. */
function keyAt(memory: Buffer, start: number): Buffer {
  const binary = findValue(memory, start, '_id', BINARY);
  if (binary !== -1) return Buffer.from(memory.subarray(binary, binary + KEY_BYTES));
  const objectId = findValue(memory, start, '_id', OBJECT_ID);
  return Buffer.from(memory.subarray(objectId, objectId + PACKET_KEY.OWN_BYTES));
}

function withoutYielded<Part extends HistoryPart>(part: Part, place: Place): Part {
  if (part.kind !== 'packets' || part.last !== null) return part;
  const { memory, starts } = part;
  // The packets at the place come first.
  if (starts[0] === undefined || !isAt(part, starts[0], place)) return part;
  const isYielded = (start: number): boolean =>
    isAt(part, start, place) && place.keys.some((key) => key.equals(keyAt(memory, start)));
  return { ...part, starts: starts.filter((start) => !isYielded(start)) };
}

function placeAfter(part: HistoryPart, before: Place | null): Place | null {
  if (part.kind !== 'packets') return { ...part.last, keys: [] };
  if (part.last !== null) return { ...part.last, keys: [] };
  const { memory, starts } = part;
  const last = starts.at(-1);
  if (last === undefined) return before;
  const here = { timeMs: readNumber(memory, last, 'time'), stampUs: readNumber(memory, last, '_ts') };
  const keys: Buffer[] = [];
  let index = starts.length - 1;
  for (; index >= 0 && isAt(part, starts[index] as number, here); index--) {
    keys.push(keyAt(memory, starts[index] as number));
  }
  const isAllOne = index < 0 && before?.timeMs === here.timeMs && before.stampUs === here.stampUs;
  return { ...here, keys: isAllOne ? [...before.keys, ...keys] : keys };
}
