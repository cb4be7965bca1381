/** The changes of packets since a position in the change stream, in their order, with the markers of the owner between them. */
import type { ChangeStream, Document, ResumeToken } from 'mongodb';
import { LIMITS } from '../../model/limits.js';
import type { Database } from '../driver/client.js';
import { mapDriverErrors } from '../driver/errors.js';
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
  readonly token: ResumeToken;
  /** Whether nothing more was there. */
  readonly isLast: boolean;
}

/** An open change stream. */
export interface Tail {
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
export function openTail({ db }: Database, token: ResumeToken, withPackets = false): Tail {
  const shown = { operationType: 1, documentKey: 1, [MARKER]: 1, ...(withPackets && { fullDocument: 1 }) };
  const stream = db.watch([{ $match: { $or: [PACKET_CHANGES, MARKERS] } }, { $project: shown }], {
    ...(token !== null && { resumeAfter: token }),
    ...{ batchSize: LIMITS.compressionBatch, maxAwaitTimeMS: WAIT_MS },
    // Packets keep the exact types of their values.
    ...{ promoteValues: false, promoteBuffers: false, bsonRegExp: true },
  });
  return {
    read: () => mapDriverErrors(() => readPage(stream), null),
    close: () => stream.close().catch(() => undefined),
  };
}

async function readPage(stream: ChangeStream): Promise<TailPage> {
  const touched: Touched[] = [];
  const markers: string[] = [];
  while (touched.length < LIMITS.compressionBatch) {
    const change: Document | null = await stream.tryNext();
    if (change === null) return { touched, markers, token: stream.resumeToken, isLast: true };
    const marker = change.updateDescription?.updatedFields?.marker;
    if (marker === undefined) touched.push(toTouched(change));
    else markers.push(String(marker));
  }
  return { touched, markers, token: stream.resumeToken, isLast: false };
}

const toTouched = ({ operationType, documentKey, fullDocument }: Document): Touched => ({
  id: documentKey._id,
  isRemoved: operationType === 'delete',
  packet: fullDocument ?? null,
});

/** The position of now. */
export async function readPosition(database: Database): Promise<ResumeToken> {
  const tail = openTail(database, null);
  try {
    return (await tail.read()).token;
  } finally {
    await tail.close();
  }
}
