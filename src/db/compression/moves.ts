/**
 * Moves packets to the copy, as bytes. Each move is a transaction that also advances the state: it happens once, and only while
 * its owner is the owner.
 */
import { BSON, type ClientSession, type Document, MongoServerError } from 'mongodb';
import { LIMITS } from '../../model/limits.js';
import { cursorIn, type DocumentBatch, readBatch } from '../bson/document-batch.js';
import type { Database } from '../driver/client.js';
import { runRawCommand, sequenceOf } from '../driver/raw-command.js';
import { PACKETS } from '../packets/packets.js';
import type { Stored } from './catalog.js';
import { advance, type Compression, type Key, type Progress } from './state.js';
import type { Touched } from './tail.js';

/** Who moves. */
export interface Mover {
  readonly database: Database;
  readonly owner: string;
  readonly session: ClientSession;
}

/** From where to where. */
export interface Move {
  readonly packets: Stored;
  readonly copy: Stored;
}

const BY_ID = { sort: { _id: 1 }, hint: { _id: 1 } };
const ONLY_ID = { projection: { _id: 1 } };

/** From which packet on, without it, to which one. */
export type Range = Pick<Compression, 'from' | 'end'>;

/** The key of the last packet; null where there is none. */
export async function findLastKey(mover: Mover, packets: Stored): Promise<Key | null> {
  const [last] = (await read(mover, packets, { sort: { _id: -1 }, limit: 1, ...ONLY_ID })).documents;
  return last === undefined ? null : keyOf(last);
}

/**
 * Copies the packets that follow `from`. With the last ones, the next stage begins: packets that are stored later are changes.
 * Returns what it advanced.
 */
export function copyNext(
  mover: Mover,
  move: Move,
  state: Pick<Compression, 'from' | 'end' | 'copied'>,
): Promise<Pick<Compression, 'from' | 'end' | 'copied' | 'stage'>> {
  return transact(mover, async () => {
    const filter = state.from === null ? {} : { _id: { $ne: state.from._id } };
    const limit = LIMITS.compressionBatch;
    const range = { filter, ...rangeOf(state), ...BY_ID, limit, batchSize: limit };
    // A cursor that is left open, because a reply has a limited size, ends with the transaction.
    const { documents, cursorId } = await read(mover, move.packets, range);
    await insert(mover, move.copy, documents);
    const isEnd = documents.length < limit && cursorId === 0n;
    const last = isEnd && state.end !== null ? [state.end._id] : [];
    await mirrorIds(mover, move, last);
    const reached = {
      stage: isEnd ? ('comparing' as const) : ('copying' as const),
      from: isEnd ? null : keyOf(documents.at(-1) as Buffer),
      // Compared is also what has been stored since.
      end: isEnd ? await findLastKey(mover, move.packets) : state.end,
      copied: state.copied + documents.length + last.length,
    };
    await advance(mover.database, mover.owner, reached, mover.session);
    return reached;
  });
}

/** Makes these packets the same in the copy, there or not. Those in the range that will be copied are left out. */
export function mirror(
  mover: Mover,
  move: Move,
  { touched, range, progress }: { touched: readonly Touched[]; range: Range | null; progress: Progress },
): Promise<void> {
  return transact(mover, async () => {
    const ids = touched.map(({ id }) => id);
    await mirrorIds(mover, move, ids, range === null ? {} : outsideOf(range));
    await advance(mover.database, mover.owner, progress, mover.session);
  });
}

async function mirrorIds(mover: Mover, { packets, copy }: Move, ids: readonly unknown[], condition: Document = {}) {
  if (ids.length === 0) return;
  await remove(mover, copy, ids);
  const filter = { _id: { $in: ids }, ...condition };
  let batch = await read(mover, packets, { filter });
  for (;;) {
    await insert(mover, copy, batch.documents);
    if (batch.cursorId === 0n) return;
    batch = await run(mover, { getMore: batch.cursorId, collection: PACKETS }).then((reply) =>
      readBatch(cursorIn(reply)),
    );
  }
}

/**
 * Compares which packets of a range are there and in the copy, and mirrors those that differ: their changes are still to come, or
 * something went wrong. Returns the beginning of the next range, or null after the last one.
 */
export function compareNext(
  mover: Mover,
  { packets, copy }: Move,
  { from, end }: Range,
): Promise<{ from: Key | null; differing: number }> {
  return transact(mover, async () => {
    const limit = LIMITS.compressionCompareBatch + 1;
    const options = { ...rangeOf({ from, end }), ...BY_ID, ...ONLY_ID, limit, batchSize: limit };
    const present = (await read(mover, packets, options)).documents;
    const next = present.length < limit ? null : keyOf(present.pop() as Buffer);
    const copied = new Map<string, Buffer>();
    let batch = await read(mover, copy, {
      ...{ ...rangeOf({ from, end: next ?? end }), ...BY_ID, ...ONLY_ID, batchSize: limit },
    });
    for (;;) {
      for (const id of batch.documents) copied.set(textOf(id), id);
      if (batch.cursorId === 0n) break;
      batch = readBatch(cursorIn(await run(mover, { getMore: batch.cursorId, collection: copy.name })));
    }
    const missing = present.filter((id) => !copied.delete(textOf(id)));
    const differing = [...missing, ...copied.values()].map((id) => keyOf(id)._id);
    await mirrorIds(mover, { packets, copy }, differing);
    await advance(mover.database, mover.owner, { from: next }, mover.session);
    return { from: next, differing: differing.length };
  });
}

/**
 * Applies changes to the copy after the exchange: removals of packets, and packets that an owner who was overtaken let in at the
 * last moment. These are published twice.
 */
export function settleLast(
  mover: Mover,
  copy: Stored,
  { touched, progress }: { touched: readonly Touched[]; progress: Progress },
): Promise<void> {
  return transact(mover, async () => {
    const last = new Map(touched.map((one) => [textOf(BSON.serialize({ _id: one.id })), one]));
    const removed = [...last.values()].filter(({ isRemoved }) => isRemoved).map(({ id }) => id);
    if (removed.length > 0) await remove(mover, copy, removed);
    const stored = [...last.values()].filter(({ isRemoved, packet }) => !isRemoved && packet !== null);
    if (stored.length > 0) {
      const filter = { _id: { $in: stored.map(({ id }) => id) } };
      const present = (await read(mover, copy, { filter, ...ONLY_ID, batchSize: stored.length })).documents;
      const known = new Set(present.map(textOf));
      const missing = stored.filter(({ id }) => !known.has(textOf(BSON.serialize({ _id: id }))));
      await insert(
        mover,
        copy,
        missing.map(({ packet }) => BSON.serialize(packet as Document)),
      );
    }
    await advance(mover.database, mover.owner, progress, mover.session);
  });
}

const TRANSACTION = { readConcern: { level: 'snapshot' }, writeConcern: { w: 'majority' } } as const;

const transact = <T>({ session }: Mover, work: () => Promise<T>): Promise<T> =>
  session.withTransaction(work, TRANSACTION);

const rangeOf = ({ from, end }: Range): Document => ({
  ...(from !== null && { min: from }),
  ...(end !== null && { max: end }),
});

function outsideOf({ from, end }: Range): Document {
  const before = from === null ? [] : [{ $lte: ['$_id', { $literal: from._id }] }];
  const after = end === null ? [] : [{ $gte: ['$_id', { $literal: end._id }] }];
  return { $expr: { $or: [...before, ...after] } };
}

/** Different for different bytes, as UTF-8 would not be. */
const textOf = (bson: Uint8Array): string => Buffer.from(bson.buffer, bson.byteOffset, bson.length).toString('latin1');

/** Numbers beyond 2⁵³ stay exact. */
const keyOf = (bson: Uint8Array): Key => ({
  _id: BSON.deserialize(bson, { promoteValues: false, promoteBuffers: false })._id,
});

async function read(mover: Mover, { name, uuid }: Stored, find: Document): Promise<DocumentBatch> {
  return readBatch(cursorIn(await run(mover, { find: name, ...find, collectionUUID: uuid })));
}

async function insert(mover: Mover, { name, uuid }: Stored, documents: readonly Uint8Array[]): Promise<void> {
  if (documents.length === 0) return;
  const command = { insert: name, documents: sequenceOf('documents', documents), collectionUUID: uuid };
  await run(mover, { ...command, bypassDocumentValidation: true });
}

async function remove(mover: Mover, { name, uuid }: Stored, ids: readonly unknown[]): Promise<void> {
  const deletes = [{ q: { _id: { $in: ids } }, limit: 0 }];
  await run(mover, { delete: name, deletes, collectionUUID: uuid });
}

/** Runs a command in the transaction. Throws also the errors of single writes. */
async function run({ database, session }: Mover, command: Document): Promise<Buffer> {
  const reply = await runRawCommand(database.db, command, session);
  if (!('insert' in command || 'delete' in command)) return reply;
  const [error] = BSON.deserialize(reply).writeErrors ?? [];
  if (error !== undefined) throw new MongoServerError(error);
  return reply;
}
