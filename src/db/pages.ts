/** Raw reads: documents leave the database as bytes and become JSON bytes; nothing in between is built. */
import { setImmediate as turn } from 'node:timers/promises';
import { BSON, type ClientSession, type Document } from 'mongodb';
import { tooLarge } from '../errors.js';
import { LIMITS } from '../model/limits.js';
import { type Batch, cursorIn, documentAt, readBatch, readShownId } from './bson.js';
import type { Database } from './connect.js';
import { translated } from './documents.js';
import { JsonWriter, writeJson } from './json.js';
import { type HeldBytes, holdBytes } from './lists.js';
import { FRESH, type Memory } from './memory.js';
import { runRawCommand } from './raw-command.js';
import { runStoppable } from './stoppable.js';

/** A page of a list as it goes to the client: a JSON array, laid out as `LAYOUT` says. */
export interface JsonPage {
  readonly body: Buffer;
  readonly count: number;
  readonly lastId: string | null;
  /** To be called when the body is sent, and nobody reads it any more; absent where it is not known when that is. */
  readonly release?: () => void;
}

/**
 * How a JSON array is laid out: every element and every comma on a line of its own. There are clients that read a list line
 * by line as it arrives, and know no other layout.
 */
export const LAYOUT = { begin: '[\n', between: '\n,\n', end: '\n]\n', empty: '[\n]\n' } as const;

/** A page without any element. */
export const EMPTY_PAGE: JsonPage = { body: Buffer.from(LAYOUT.empty), count: 0, lastId: null };

/** What is written into a document's object after its own members. */
export type Extra = (writer: JsonWriter, id: string) => void;

/** Looks up, for a batch of documents by `_id`, what is written into each. */
export type PrepareExtra = (ids: string[]) => Promise<Extra>;

/** How many documents are turned into JSON before others get their turn of the event loop. */
const SLICE = 250;
/** A batch of more bytes takes so long that it waits for its turn. */
const BIG_BYTES = 256 * 1_024;
/** What a page has room for at first. */
const FIRST_BYTES = 16 * 1_024;
/** About how many bytes of JSON come of a byte of BSON. */
const JSON_PER_BSON = 1.75;

/** Reads every batch of a `find` or `aggregate` command; 503 when one of them takes longer. */
export async function* rawBatches(
  database: Database,
  command: Document,
  withinMs: number = LIMITS.databaseOperationMs,
): AsyncGenerator<Batch> {
  // A cursor belongs to the session that opened it.
  const session = database.client.startSession();
  let batch: Batch | null = null;
  try {
    batch = await runRaw(database, Object.assign({}, command, { maxTimeMS: withinMs }), { withinMs, session });
    yield batch;
    while (batch.cursorId !== 0n) {
      const more = { getMore: batch.cursorId, collection: collectionIn(batch) };
      batch = await runRaw(database, more, { withinMs, session });
      yield batch;
    }
  } finally {
    if (batch !== null && batch.cursorId !== 0n) {
      const kill = { killCursors: collectionIn(batch), cursors: [batch.cursorId] };
      await database.db.command(kill, { session }).catch(() => undefined);
    }
    await session.endSession();
  }
}

const collectionIn = ({ namespace }: Batch): string => namespace.slice(namespace.indexOf('.') + 1);

async function runRaw(
  database: Database,
  command: Document,
  { withinMs, session }: { withinMs: number; session?: ClientSession },
): Promise<Batch> {
  const run = () => translated(() => runRawCommand(database.db, command, session), withinMs);
  const reply = session === undefined ? await run() : await runStoppable(database, session, run);
  return readBatch(cursorIn(reply));
}

/**
 * Every document of the command as one JSON array; `prepareExtra` (by batch of documents) adds members to each. The page is
 * in memory that is `memory`'s.
 */
export async function readPage(
  database: Database,
  command: Document,
  { prepareExtra, memory = FRESH }: { prepareExtra?: PrepareExtra | undefined; memory?: Memory } = {},
): Promise<JsonPage> {
  const held = holdBytes(database);
  try {
    const page = await writePage(database, command, { prepareExtra, memory, held });
    const release = (): void => {
      memory.takeBack(Buffer.from(page.body.buffer));
      held.release();
    };
    return { ...page, release };
  } catch (error) {
    held.release();
    throw error;
  }
}

/** The same page for several readers. */
export function sharePage(page: JsonPage, readers: number): JsonPage {
  const { release } = page;
  if (release === undefined || readers === 1) return page;
  let left = readers;
  const releaseOnce = (): void => {
    if (--left === 0) release();
  };
  return { ...page, release: releaseOnce };
}

interface PageParts {
  readonly prepareExtra: PrepareExtra | undefined;
  readonly memory: Memory;
  readonly held: HeldBytes;
}

async function writePage(
  database: Database,
  command: Document,
  { prepareExtra, memory, held }: PageParts,
): Promise<JsonPage & { readonly body: Buffer<ArrayBuffer> }> {
  const writer = new JsonWriter(FIRST_BYTES, memory);
  let count = 0;
  let lastId: string | null = null;
  writer.raw(LAYOUT.begin);
  for await (const batch of rawBatches(database, command)) {
    const extra = prepareExtra && (await prepareExtra(batch.documents.map(idOf)));
    const isBig = batch.bytes > BIG_BYTES;
    if (isBig) await takeTurn();
    try {
      writer.reserve(batch.bytes * JSON_PER_BSON);
      let last: number | null = null;
      for (const start of batch.starts()) {
        if (count > 0) writer.raw(LAYOUT.between);
        writeDocument(writer, batch.memory, start, extra);
        last = start;
        if (++count % SLICE === 0) await yieldWithin(writer);
      }
      if (last !== null) lastId = idOf(documentAt(batch.memory, last));
    } finally {
      if (isBig) endTurn();
    }
    held.growTo(writer.length);
  }
  // Of an empty list the first line is there already.
  writer.raw(count === 0 ? LAYOUT.empty.slice(LAYOUT.begin.length) : LAYOUT.end);
  const body = writer.take();
  return { body, count, lastId };
}

/** Big batches become JSON one after the other: side by side all would be in memory, and none would be ready sooner. */
const waiting: (() => void)[] = [];
let isTaken = false;

async function takeTurn(): Promise<void> {
  if (isTaken) await new Promise<void>((resolve) => waiting.push(resolve));
  isTaken = true;
}

function endTurn(): void {
  const next = waiting.shift();
  if (next === undefined) isTaken = false;
  else next();
}

async function yieldWithin(writer: JsonWriter): Promise<void> {
  if (writer.length > LIMITS.listAnswerBytes) {
    throw tooLarge('the answer would be too large: ask for less with limit, or for fewer fields with only');
  }
  await turn();
}

/** The first document of the `find` command, or null when there is none. */
export async function readFirst(database: Database, command: Document): Promise<Buffer | null> {
  const withinMs = LIMITS.databaseAnswerMs;
  const one = Object.assign({}, command, { limit: 1, batchSize: 1, singleBatch: true, maxTimeMS: withinMs });
  if (database.stop === undefined) return (await runRaw(database, one, { withinMs })).documents[0] ?? null;
  for await (const { documents } of rawBatches(database, one)) return documents[0] ?? null;
  return null;
}

/** The same as JSON. */
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

/** How many documents of the collection match. */
export async function countMatching(database: Database, collection: string, filter: Document): Promise<number> {
  const pipeline = [{ $match: filter }, { $group: { _id: null, count: { $sum: 1 } } }];
  for await (const { documents } of rawBatches(database, { aggregate: collection, pipeline, cursor: {} })) {
    for (const document of documents) return BSON.deserialize(document).count;
  }
  return 0;
}

/** docs/reference/http-api.md, `meta`. One after the other: side by side they would keep as many of the database's cores busy. */
export async function summarize(
  database: Database,
  { collection, filter }: { readonly collection: string; readonly filter: Document },
  readEnd: (database: Database, direction: 1 | -1) => Promise<Buffer | null>,
): Promise<Buffer> {
  const count = await countMatching(database, collection, filter);
  const first = count === 0 ? null : await readEnd(database, 1);
  const last = count === 0 ? null : await readEnd(database, -1);
  return Buffer.from(`{"count":${count},"first":${first ?? 'null'},"last":${last ?? 'null'}}\n`);
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
