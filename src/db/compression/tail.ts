/** The changes of packets since a position in the change stream, in their order, with the markers of the owner between them. */
import { BSON, type Document, type Timestamp } from 'mongodb';
import { LIMITS } from '../../model/limits.js';
import { secondsOf } from '../../model/position.js';
import { SECOND_MS } from '../../model/units.js';
import type { Database } from '../driver/client.js';
import { mapDriverErrors } from '../driver/errors.js';
import { runRawCommand } from '../driver/raw-command.js';
import { PACKETS } from '../packets/packets.js';
import { COMPRESSION } from '../schema/collections.js';

/** A packet that was stored or removed. */
export interface Touched {
  readonly id: unknown;
  readonly isRemoved: boolean;
  /** As it was stored, if the tail is read with packets. */
  readonly packet: Document | null;
}

/** The next changes, and the position after them. */
export interface TailPage {
  readonly touched: readonly Touched[];
  readonly markers: readonly string[];
  readonly token: Document;
  /** Whether there was less than one page can hold. */
  readonly isLast: boolean;
  /** How long before the last write of the database the position is. */
  readonly behindMs: number;
}

/** An open change stream. */
export interface Tail {
  /** The position of its beginning. */
  readonly start: Document;
  read(): Promise<TailPage>;
  close(): Promise<void>;
}

const MARKER = 'updateDescription.updatedFields.marker';
const PACKET_CHANGES = { 'ns.coll': PACKETS, operationType: { $in: ['insert', 'update', 'replace', 'delete'] } };
const MARKERS = { 'ns.coll': 'installation', 'documentKey._id': COMPRESSION, [MARKER]: { $exists: true } };
const WAIT_MS = 10;

/** NoMatchingDocument, CappedPositionLost, InvalidResumeToken, ChangeStreamFatalError, ChangeStreamHistoryLost. */
const LOST: ReadonlySet<unknown> = new Set([47, 136, 260, 280, 286]);

/** Whether the database no longer knows the changes since the position. */
export function isHistoryLost(error: unknown): boolean {
  const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
  return LOST.has(code) || LOST.has(cause?.code);
}

/** Opens the stream after `token`, or from now on. */
export async function openTail({ client, db }: Database, token: Document | null, withPackets = false): Promise<Tail> {
  const shown = { operationType: 1, documentKey: 1, [MARKER]: 1, ...(withPackets && { fullDocument: 1 }) };
  const pipeline = [
    { $changeStream: token === null ? {} : { resumeAfter: token } },
    { $match: { $or: [PACKET_CHANGES, MARKERS] } },
    { $project: shown },
  ];
  const session = client.startSession();
  const run = (command: Document, options = {}) =>
    mapDriverErrors(() => db.command(command, { session, ...options }), null);
  const command = { aggregate: 1, pipeline, cursor: { batchSize: 0 }, readConcern: { level: 'majority' } };
  const { cursor } = await run(command, { promoteLongs: false }).catch(async (error: unknown) => {
    await session.endSession();
    throw error;
  });
  const next = { getMore: cursor.id, collection: '$cmd.aggregate', batchSize: LIMITS.compressionBatch };
  return {
    start: cursor.postBatchResumeToken,
    async read() {
      // With the option to keep types, the driver would keep that of an error's code as well, which nobody would recognize.
      const reply = await mapDriverErrors(() => runRawCommand(db, { ...next, maxTimeMS: WAIT_MS }, session), null);
      return toPage(BSON.deserialize(reply, AS_STORED));
    },
    async close() {
      await run({ killCursors: next.collection, cursors: [cursor.id] }).catch(() => undefined);
      await session.endSession().catch(() => undefined);
    },
  };
}

/** Keeps the exact types of all values. */
const AS_STORED = { promoteValues: false, promoteBuffers: false, bsonRegExp: true };

function toPage({ cursor, operationTime }: Document): TailPage {
  const { nextBatch, postBatchResumeToken: token } = cursor;
  const touched: Touched[] = [];
  const markers: string[] = [];
  for (const change of nextBatch) {
    const marker = change.updateDescription?.updatedFields?.marker;
    if (marker === undefined) touched.push(toTouched(change));
    else markers.push(String(marker));
  }
  const isLast = nextBatch.length < LIMITS.compressionBatch;
  return { touched, markers, token, isLast, behindMs: toBehindMs(operationTime, token) };
}

/** How long before the last write of the database a stored position is. */
export async function readBehindMs({ db }: Database, token: Document): Promise<number> {
  const { operationTime } = await mapDriverErrors(() => db.command({ ping: 1 }));
  return toBehindMs(operationTime, token);
}

const toBehindMs = (operationTime: Timestamp, { _data }: Document): number =>
  (operationTime.t - secondsOf(Buffer.from(_data, 'hex').toString('base64url'))) * SECOND_MS;

const toTouched = ({ operationType, documentKey, fullDocument }: Document): Touched => ({
  id: documentKey._id,
  isRemoved: operationType === 'delete',
  packet: fullDocument ?? null,
});
