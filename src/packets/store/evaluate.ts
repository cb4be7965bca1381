/** Lets the database select among packets that it has in another form: only it knows what its filters, orders and projections mean. */
import { BSON, type Document, Double, Int32, Long } from 'mongodb';
import { LIMITS } from '../../core/limits.js';
import { membersOf } from '../../packed/members.js';
import { type BatchOptions, rawBatches } from '../../platform/mongo/bson/raw-batches.js';
import { BSON_TYPES } from '../../platform/mongo/bson/reader.js';
import type { Database } from '../../platform/mongo/driver/client.js';

const { ARRAY, BOOLEAN, DOCUMENT, DOUBLE, INT32, INT64, NULL, STRING } = BSON_TYPES;

/** Applies stages to documents, in pieces: each stage must treat every document alone, or the caller the results of the pieces. */
export async function evaluate(
  database: Database,
  documents: readonly Buffer[],
  stages: readonly Document[],
  options: BatchOptions,
  pieceBytes: number = LIMITS.evaluatedBytes,
): Promise<Buffer[]> {
  const found: Buffer[] = [];
  for (const piece of piecesOf(documents, pieceBytes)) {
    const pipeline = [{ $documents: { $literal: piece.map((document) => toMap(document)) } }, ...stages];
    const command = { aggregate: 1, pipeline, cursor: { batchSize: piece.length + 1 } };
    for await (const batch of rawBatches(database, command, { ...options, readsAhead: false })) {
      found.push(...batch.documents);
    }
  }
  return found;
}

function* piecesOf(documents: readonly Buffer[], pieceBytes: number): Generator<readonly Buffer[]> {
  let from = 0;
  let bytes = 0;
  for (const [nth, { length }] of documents.entries()) {
    if (nth > from && bytes + length > pieceBytes) {
      yield documents.slice(from, nth);
      from = nth;
      bytes = 0;
    }
    bytes += length;
  }
  if (from < documents.length) yield documents.slice(from);
}

/** A document that the driver writes as it is: objects would change the types of numbers, and the order of names such as `7`. */
function toMap(bson: Buffer): Map<string, unknown> {
  const map = new Map<string, unknown>();
  for (const { type, nameStart, nameEnd, start, end } of membersOf(bson) ?? []) {
    map.set(bson.toString('utf8', nameStart, nameEnd), toValue(type, bson.subarray(start, end)));
  }
  return map;
}

function toValue(type: number, bytes: Buffer): unknown {
  if (type === DOUBLE) return new Double(bytes.readDoubleLE());
  if (type === INT32) return new Int32(bytes.readInt32LE());
  if (type === INT64) return Long.fromBigInt(bytes.readBigInt64LE());
  if (type === NULL) return null;
  if (type === BOOLEAN) return bytes[0] === 1;
  if (type === STRING) return bytes.toString('utf8', 4, bytes.length - 1);
  if (type === DOCUMENT) return toMap(bytes);
  if (type === ARRAY) return [...toMap(bytes).values()];
  const alone = Buffer.concat([Buffer.alloc(4), Buffer.of(type, NAME, 0), bytes, Buffer.of(0)]);
  alone.writeInt32LE(alone.length);
  return BSON.deserialize(alone, AS_STORED)[String.fromCharCode(NAME)];
}

const NAME = 0x76;
const AS_STORED = { promoteValues: false, promoteLongs: false, promoteBuffers: false, bsonRegExp: true };
