/**
 * Exports the packets of an object as one text of any length, in pieces. Memory is bounded by one batch: the next batch is read
 * after the previous piece has been sent.
 */

import { ApiError, conflict, errorBody, toApiError } from '../../core/errors.js';
import { LIMITS } from '../../core/limits.js';
import type { Page } from '../../core/list.js';
import { type PacketBatch, streamPackets } from '../../packets/packet-stream.js';
import { toPacketQuery } from '../../packets/packets.js';
import { type RemovedInterval, watchRemovals } from '../../packets/removal-marks.js';
import { clock } from '../../platform/clock.js';
import { createBufferPool } from '../../platform/mongo/bson/buffer-pool.js';
import { JsonWriter } from '../../platform/mongo/bson/json-writer.js';
import { readNumber } from '../../platform/mongo/bson/numbers.js';
import { acquireConversion, releaseConversion } from '../../platform/mongo/bson/raw-cursor.js';
import { readShownId } from '../../platform/mongo/bson/reader.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import type { ListRequest } from '../../platform/mongo/driver/list-caller.js';
import type { Encoder } from './encoder.js';

const FIRST_BYTES = 64 * 1_024;
/** How many packets are encoded between two checks of the clock. */
const CLOCK_CHECK_PACKETS = 32;
/** Buffers of pieces, each of which has a single reader. */
const PIECES = createBufferPool();

/** The packets of an export; a null `limit` means all. */
export interface ExportSelection extends Omit<Page, 'kind' | 'limit'> {
  readonly limit: number | null;
}

export interface ExportPiece {
  readonly body: Buffer;
  /** How many packets have been read so far. */
  readonly packets: number;
  /** Whether this is the last piece; `error` then tells why packets are missing. */
  readonly isLast: boolean;
  readonly error: ApiError | null;
  /** To be called when the body has been sent. */
  release(): void;
}

/**
 * Throws 400, 429 or 503 before the first piece. After it, errors are reported in the last piece, except aborts, which are thrown
 * because no client reads any more. `ending` is aborted when the service stops.
 */
export async function* exportPackets(
  database: Database,
  objectId: string,
  selection: ExportSelection,
  { encoder, ending }: { encoder: Encoder; ending: AbortSignal },
): AsyncGenerator<ExportPiece> {
  const progress = createProgress(selection);
  const text = createText(database.listing);
  let hasBegun = false;
  try {
    const gaps = await watchGaps(database, objectId, selection);
    for await (const found of batchesOf(database, objectId, selection, encoder)) {
      await gaps.check(found);
      const batch = progress.take(found);
      if (!hasBegun) encoder.begin(text.writer, batch);
      hasBegun = true;
      await encodeInSlices(text.writer, encoder, batch);
      if (!progress.isFull()) yield text.piece(progress.packets);
      else break;
      ending.throwIfAborted();
    }
    if (!progress.isFull()) await gaps.check(null);
    if (!hasBegun) encoder.begin(text.writer, null);
    const error = gaps.isFound ? conflict('packets were removed during the export; ask for it again') : null;
    await encoder.end(text.writer, error && errorBody(error));
    yield text.last(progress.packets, error);
  } catch (thrown) {
    if (!hasBegun || database.listing?.caller.disconnectSignal().aborted) throw thrown;
    const error = progress.explain(toApiError(thrown));
    await encoder.end(text.writer, errorBody(error));
    yield text.last(progress.packets, error);
  }
}

async function* batchesOf(
  database: Database,
  objectId: string,
  selection: ExportSelection,
  { fields }: Encoder,
): AsyncGenerator<PacketBatch> {
  const { limit, offset, sort } = selection;
  const wanted = limit === null ? LIMITS.exportBatchPackets : limit + offset;
  const query = await toPacketQuery(database, objectId, selection);
  if (wanted === 0) return;
  yield* streamPackets(database, {
    ...query,
    fields,
    isDescending: sort?.descending ?? false,
    batchPackets: Math.min(wanted, LIMITS.exportBatchPackets),
  });
}

/** Finds out whether packets were removed before they were read. */
async function watchGaps(database: Database, objectId: string, { fromMs, toMs, sort }: ExportSelection) {
  const removals = await watchRemovals(database, objectId);
  const isDescending = sort?.descending ?? false;
  let unreadFromMs = fromMs ?? Number.NEGATIVE_INFINITY;
  let unreadToMs = toMs ?? Number.POSITIVE_INFINITY;
  const gaps = {
    isFound: false,
    /** After each batch was read; null after the last one. */
    async check(batch: PacketBatch | null): Promise<void> {
      const removed = await removals.read();
      const isUnread = (one: RemovedInterval): boolean => one.toMs >= unreadFromMs && one.fromMs <= unreadToMs;
      if (removed === null || removed.some(isUnread)) gaps.isFound = true;
      const last = batch?.starts.at(-1);
      if (batch === null || last === undefined) return;
      const lastMs = readNumber(batch.memory, last, 'time');
      if (isDescending) unreadToMs = lastMs;
      else unreadFromMs = lastMs;
    },
  };
  return gaps;
}

/** Counts packets to skip and packets to export. */
function createProgress({ limit, offset }: ExportSelection) {
  let toSkip = offset;
  let toTake = limit ?? Number.POSITIVE_INFINITY;
  let lastId: string | null = null;
  const progress = {
    packets: 0,
    isFull: (): boolean => toTake === 0,
    take({ memory, starts }: PacketBatch): PacketBatch {
      const taken = starts.slice(toSkip, Math.min(starts.length, toSkip + toTake));
      toSkip = Math.max(0, toSkip - starts.length);
      toTake -= taken.length;
      progress.packets += taken.length;
      const last = taken.at(-1);
      if (last !== undefined) lastId = readShownId(memory, last);
      return { memory, starts: taken };
    },
    /** Adds to the error how to continue. */
    explain({ status, help, cause }: ApiError): ApiError {
      const next = lastId === null ? '' : `; continue with after=${lastId}`;
      return new ApiError(status, `incomplete after ${progress.packets} packets${next}${help ? `: ${help}` : ''}`, {
        cause,
      });
    },
  };
  return progress;
}

/** Encodes packets in slices of time, and yields to the event loop between them. */
async function encodeInSlices(writer: JsonWriter, encoder: Encoder, { memory, starts }: PacketBatch): Promise<void> {
  await acquireConversion();
  try {
    let sinceMs = clock.steadyMs();
    for (let index = 0; index < starts.length; index++) {
      encoder.packet(writer, memory, starts[index] as number);
      if (encoder.group?.isFull()) await encoder.group.write(writer);
      if (index % CLOCK_CHECK_PACKETS !== 0 || clock.steadyMs() - sinceMs < LIMITS.exportSliceMs) continue;
      await clock.nextTurn();
      sinceMs = clock.steadyMs();
    }
  } finally {
    releaseConversion();
  }
}

/** Counts written but unsent text against the caller's budget for answers. */
function createText(listing: ListRequest | undefined) {
  const writer = new JsonWriter(FIRST_BYTES, PIECES);
  let isFirst = true;
  const hold = (bytes: number): (() => void) => {
    if (listing === undefined) return () => undefined;
    const { budget, caller } = listing;
    // Only the first piece can be refused: later ones belong to an answer that has begun.
    const refusal = isFirst ? budget.take(caller.userId, bytes) : budget.add(caller.userId, bytes);
    if (refusal) throw refusal;
    isFirst = false;
    return () => budget.release(caller.userId, bytes);
  };
  const piece = (packets: number, error: ApiError | null, isLast: boolean): ExportPiece => {
    const releaseBytes = hold(writer.length);
    const body = writer.take();
    const release = (): void => {
      PIECES.release(Buffer.from(body.buffer));
      releaseBytes();
    };
    return { body, packets, isLast, error, release };
  };
  return {
    writer,
    piece: (packets: number): ExportPiece => piece(packets, null, false),
    last: (packets: number, error: ApiError | null): ExportPiece => piece(packets, error, true),
  };
}
