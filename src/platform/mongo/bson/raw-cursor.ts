/** Raw reads: converts documents from BSON bytes to JSON bytes without building objects. */

import { BSON, type Document } from 'mongodb';
import { LIMITS } from '../../../core/limits.js';
import { clock } from '../../clock.js';
import type { Database } from '../driver/client.js';
import { type HeldBytes, holdBytes } from '../driver/list-queue.js';
import { type BufferPool, FRESH } from './buffer-pool.js';
import type { Documents } from './document-batch.js';
import { JsonWriter, writeJson } from './json-writer.js';
import { rawBatches, readRawBatch } from './raw-batches.js';
import { documentAt, readShownId } from './reader.js';

/** A page of a list as a JSON array in the layout `LAYOUT`. */
export interface JsonPage {
  readonly body: Buffer;
  readonly count: number;
  readonly lastId: string | null;
  /** Whether the page ended before its `limit` because of its size. */
  readonly isCut?: boolean;
  /** To be called when the body is sent and no longer read; absent when that moment is unknown. */
  readonly release?: () => void;
}

/**
 * The layout of JSON arrays: every element and every comma on a separate line. Some clients read a list line by line as it
 * arrives, and accept no other layout.
 */
export const LAYOUT = { begin: '[\n', between: '\n,\n', end: '\n]\n', empty: '[\n]\n' } as const;

export const EMPTY_PAGE: JsonPage = { body: Buffer.from(LAYOUT.empty), count: 0, lastId: null };

/** Writes further members after those of a document. */
export type Extra = (writer: JsonWriter, id: string) => void;

/** Looks up the further members for a batch of documents by `_id`. */
export type PrepareExtra = (ids: string[]) => Promise<Extra>;

/** How many documents are converted before the event loop runs other work. */
const SLICE = 250;
/** How many bytes of JSON are written before that: a few documents may be as long as many. */
const SLICE_BYTES = 64 * 1_024;
/** Larger batches are converted one at a time. */
const BIG_BYTES = 256 * 1_024;
/** The initial size of a page's buffer. */
const FIRST_BYTES = 16 * 1_024;
/** The approximate ratio of JSON bytes to BSON bytes. */
const JSON_PER_BSON = 1.75;

/**
 * Reads documents into one JSON array, until it has reached the maximum size of an answer. `prepareExtra`, called for each batch, adds members to the documents.
 * The buffer of the page comes from `pool`.
 */
export async function readPage(
  database: Database,
  batches: AsyncIterable<Documents>,
  { prepareExtra, pool = FRESH }: { prepareExtra?: PrepareExtra | undefined; pool?: BufferPool } = {},
): Promise<JsonPage> {
  const held = holdBytes(database);
  try {
    const page = await writePage(batches, { prepareExtra, pool, held });
    const release = (): void => {
      pool.release(Buffer.from(page.body.buffer));
      held.release();
    };
    return { ...page, release };
  } catch (error) {
    held.release();
    throw error;
  }
}

/** Shares a page among several readers: the last one releases it. */
export function sharePage(page: JsonPage, readers: number): JsonPage {
  const { release } = page;
  if (release === undefined || readers === 1) return page;
  let left = readers;
  const releaseOnce = (): void => {
    if (--left === 0) release();
  };
  return { ...page, release: releaseOnce };
}

interface PageDeps {
  readonly prepareExtra: PrepareExtra | undefined;
  readonly pool: BufferPool;
  readonly held: HeldBytes;
}

async function writePage(
  batches: AsyncIterable<Documents>,
  { prepareExtra, pool, held }: PageDeps,
): Promise<JsonPage & { readonly body: Buffer<ArrayBuffer> }> {
  const writer = new JsonWriter(FIRST_BYTES, pool);
  let count = 0;
  let lastId: string | null = null;
  let isCut = false;
  writer.raw(LAYOUT.begin);
  for await (const batch of batches) {
    const extra = prepareExtra && (await prepareExtra(batch.documents.map(idOf)));
    const isBig = batch.bytes > BIG_BYTES;
    if (isBig) await acquireConversion();
    try {
      writer.reserve(batch.bytes * JSON_PER_BSON);
      let last = -1;
      let sliceEnd = writer.length + SLICE_BYTES;
      for (let start = batch.first(); start !== -1; start = batch.next(start)) {
        isCut = writer.length > LIMITS.listAnswerBytes;
        if (isCut) break;
        if (count > 0) writer.raw(LAYOUT.between);
        writeDocument(writer, batch.memory, start, extra);
        last = start;
        if (++count % SLICE !== 0 && writer.length < sliceEnd) continue;
        await clock.nextTurn();
        sliceEnd = writer.length + SLICE_BYTES;
      }
      if (last !== -1) lastId = idOf(documentAt(batch.memory, last));
    } finally {
      if (isBig) releaseConversion();
    }
    held.growTo(writer.length);
    if (isCut) break;
  }
  // The first line of an empty list is already written.
  writer.raw(count === 0 ? LAYOUT.empty.slice(LAYOUT.begin.length) : LAYOUT.end);
  const body = writer.take();
  return { body, count, lastId, isCut };
}

/** Large batches are converted one at a time: in parallel all of them would be in memory, and none would be ready sooner. */
const waiting: (() => void)[] = [];
let isConverting = false;

export async function acquireConversion(): Promise<void> {
  if (isConverting) await new Promise<void>((resolve) => waiting.push(resolve));
  isConverting = true;
}

export function releaseConversion(): void {
  const next = waiting.shift();
  if (next === undefined) isConverting = false;
  else next();
}

/** Reads the first document of a `find` command; null when there is none. */
export async function readFirst(database: Database, command: Document): Promise<Buffer | null> {
  const withinMs = LIMITS.databaseAnswerMs;
  const one = Object.assign({}, command, { limit: 1, batchSize: 1, singleBatch: true, maxTimeMS: withinMs });
  if (database.stop === undefined) return (await readRawBatch(database, one, { withinMs })).documents[0] ?? null;
  for await (const { documents } of rawBatches(database, one)) return documents[0] ?? null;
  return null;
}

/** Reads the first document as JSON. */
export async function readOne(
  database: Database,
  command: Document,
  prepareExtra?: PrepareExtra,
): Promise<Buffer | null> {
  const document = await readFirst(database, command);
  if (document === null) return null;
  const extra = prepareExtra && (await prepareExtra([idOf(document)]));
  return writeJson((writer) => writeDocument(writer, document, 0, extra));
}

/** Counts the matching documents of the collection, with these options of the command. */
export async function countMatching(
  database: Database,
  collection: string,
  filter: Document,
  options: Document = {},
): Promise<number> {
  const pipeline = [{ $match: filter }, { $group: { _id: null, count: { $sum: 1 } } }];
  const command = { aggregate: collection, pipeline, cursor: {}, ...options };
  for await (const { documents } of rawBatches(database, command)) {
    for (const document of documents) return BSON.deserialize(document).count;
  }
  return 0;
}

/** docs/reference/http-api.md, `meta`. Runs the queries one after the other, to occupy only one core of the database. */
export async function summarize(
  count: number,
  readEnd: (direction: 1 | -1) => Promise<Buffer | null>,
): Promise<Buffer> {
  const first = count === 0 ? null : await readEnd(1);
  const last = count === 0 ? null : await readEnd(-1);
  return Buffer.from(`{"count":${count},"first":${first ?? 'null'},"last":${last ?? 'null'}}\n`);
}

/** The count of what a `find` command finds, with the first and the last of it by `_id`, as JSON. */
export async function summarizeFound(
  reader: Database,
  command: { readonly find: string; readonly filter: Document; readonly projection?: Document },
  prepareExtra?: PrepareExtra,
): Promise<Buffer> {
  const readEnd = (direction: 1 | -1) => readOne(reader, { ...command, sort: { _id: direction } }, prepareExtra);
  return summarize(await countMatching(reader, command.find, command.filter), readEnd);
}

function writeDocument(writer: JsonWriter, memory: Buffer, start: number, extra: Extra | undefined): void {
  if (extra === undefined) {
    writer.document(memory, start);
    return;
  }
  const document = documentAt(memory, start);
  writer.raw('{');
  writer.members(document);
  extra(writer, idOf(document));
  writer.raw('}');
}

const idOf = (document: Uint8Array): string => readShownId(document) ?? '';
