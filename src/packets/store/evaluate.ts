/** Lets the database select among packets that it has in another form: only it knows what its filters, orders and projections mean. */
import { BSON, type Document, Double, Int32, Long } from 'mongodb';
import { LIMITS } from '../../core/limits.js';
import { membersOf } from '../../packed/members.js';
import { clock } from '../../platform/clock.js';
import { type BatchOptions, rawBatches } from '../../platform/mongo/bson/raw-batches.js';
import { BSON_TYPES, findField, int32 } from '../../platform/mongo/bson/reader.js';
import type { Database } from '../../platform/mongo/driver/client.js';

const { ARRAY, BOOLEAN, DOCUMENT, DOUBLE, INT32, INT64, NULL, STRING } = BSON_TYPES;

/** What the database is asked about packets. */
export interface Question {
  /** They select among packets, or order them. */
  readonly stages: readonly Document[];
  /** The top-level fields that the stages name: no others are sent. */
  readonly fields: ReadonlySet<string>;
}

/** The top-level fields that conditions name. */
export function fieldsOf(conditions: readonly Document[]): Set<string> {
  const fields = new Set<string>();
  for (const condition of conditions) {
    for (const [name, value] of Object.entries(condition)) {
      if (!name.startsWith('$')) fields.add(topOf(name));
      else for (const field of fieldsOf(value as Document[])) fields.add(field);
    }
  }
  return fields;
}

/** The top-level field of a path. */
export const topOf = (path: string): string => path.split('.')[0] as string;

/**
 * The numbers of those documents that the stages leave, in the order that they make: of each piece for itself. Without `pieceBytes`, all
 * are one piece.
 */
export async function choose(
  database: Database,
  documents: readonly Buffer[],
  { stages, fields }: Question,
  { options, pieceBytes = Number.POSITIVE_INFINITY }: Asking,
): Promise<number[]> {
  const chosen: number[] = [];
  const name = unlike(fields);
  const pipeline = [...stages, { $project: { _id: 0, [name]: 1 } }];
  let nth = 0;
  for (const piece of piecesOf(documents, pieceBytes)) {
    const sent: Map<string, unknown>[] = [];
    for (const document of piece) {
      sent.push(toMap(document, fields).set(name, new Int32(nth++)));
      if (sent.length % TURN_DOCUMENTS === 0) await clock.nextTurn();
    }
    for (const found of await ask(database, sent, pipeline, options)) {
      chosen.push(int32(findField(found, name, INT32) as Buffer, 0));
    }
  }
  return chosen;
}

export interface Asking {
  readonly options: BatchOptions;
  readonly pieceBytes?: number;
}

/** How many documents are converted before the event loop runs other work. */
const TURN_DOCUMENTS = 1_000;

function unlike(fields: ReadonlySet<string>): string {
  let name = 'nth';
  while (fields.has(name)) name += '_';
  return name;
}

/** Documents as this projection shows them. */
export async function project(
  database: Database,
  documents: readonly Buffer[],
  projection: Document,
  options: BatchOptions,
): Promise<Buffer[]> {
  const shown: Buffer[] = [];
  for (const piece of piecesOf(documents, LIMITS.evaluatedBytes)) {
    const sent = piece.map((document) => toMap(document));
    shown.push(...(await ask(database, sent, [{ $project: projection }], options)));
    await clock.nextTurn();
  }
  return shown;
}

async function ask(
  database: Database,
  sent: readonly Map<string, unknown>[],
  stages: readonly Document[],
  options: BatchOptions,
): Promise<Buffer[]> {
  const found: Buffer[] = [];
  const pipeline = [{ $documents: { $literal: sent } }, ...stages];
  const command = { aggregate: 1, pipeline, cursor: { batchSize: sent.length + 1 } };
  for await (const batch of rawBatches(database, command, { ...options, readsAhead: false })) {
    for (const document of batch.documents) found.push(document);
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
function toMap(bson: Buffer, fields: ReadonlySet<string> | null = null): Map<string, unknown> {
  const map = new Map<string, unknown>();
  for (const { type, nameStart, nameEnd, start, end } of membersOf(bson) ?? []) {
    const name = bson.toString('utf8', nameStart, nameEnd);
    if (fields === null || fields.has(name)) map.set(name, toValue(type, bson.subarray(start, end)));
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
