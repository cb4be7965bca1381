/**
 * The steps of the compression up to the exchange. What is to do next follows from the collections and the stored state alone, so that any instance
 * can go on after any step, however the last one ended.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { LIMITS } from '../../model/limits.js';
import type { Database } from '../driver/client.js';
import {
  acceptInserts,
  type Catalog,
  createCopy,
  drop,
  readCatalog,
  readFreeBytes,
  readStorage,
  type Stored,
} from './catalog.js';
import { follow, withTail } from './following.js';
import { hasOlderInstance, OLDER_INSTANCE } from './instances.js';
import { compareNext, copyNext, findLastKey, type Move } from './moves.js';
import { advance, CannotCompressError, type Compression, type Stage } from './state.js';
import { openTail } from './tail.js';
import type { Work } from './work.js';

/** Options of a collection that the copy has too, or that mean nothing; nobody reads images of packets. */
const KNOWN_OPTIONS = [
  ...['storageEngine', 'indexOptionDefaults', 'changeStreamPreAndPostImages'],
  ...['validationLevel', 'validationAction'],
];

/** Removes leftovers: copies, and the refusal of inserts. */
export async function tidy(database: Database, { packets, copies }: Catalog): Promise<void> {
  for (const copy of copies) await drop(database, copy);
  if (packets?.refusesInserts) await acceptInserts(database, packets);
}

/** Ends the compression without a result, and removes what it made. */
export async function abandon(work: Work, catalog: Catalog, stage: Stage, problem: string | null): Promise<void> {
  // Without its copy, no exchange that is still under way can happen.
  await tidy(work.database, catalog);
  await advance(work.database, work.owner, { stage, problem });
}

/** Begins: checks whether it can be done, and creates the copy. */
export async function begin(work: Work, catalog: Catalog): Promise<void> {
  const { database, owner } = work;
  await tidy(database, catalog);
  const { packets } = catalog;
  const { bytes, packets: total, isCompressed } = await readStorage(database);
  const found = { bytes, total, copied: 0, from: null, attempts: 0, problem: null };
  if (isCompressed) return advance(database, owner, { ...found, stage: 'done', bytesAfter: bytes });
  if (packets === null) throw new CannotCompressError('there are no packets');
  await checkPossible(database, packets, bytes);
  const tail = await openTail(database, null);
  await tail.close();
  const copy = await createCopy(database);
  const end = await findLastKey(work, packets);
  const collections = { source: packets.uuid, copy: copy.uuid };
  await advance(database, owner, { ...found, ...collections, stage: 'copying', token: tail.start, end });
  work.log.info({ packets: total, bytes }, 'compressing packets');
}

async function checkPossible(database: Database, packets: Stored, neededBytes: number): Promise<void> {
  const hello = await database.db.command({ hello: 1 });
  if (hello.msg === 'isdbgrid') throw new CannotCompressError('the database is a sharded cluster');
  if (await hasOlderInstance(database)) throw new CannotCompressError(OLDER_INSTANCE);
  const { validator = {}, ...options } = packets.options;
  const foreign = Object.keys(options).find((name) => !KNOWN_OPTIONS.includes(name));
  if (foreign !== undefined) throw new CannotCompressError(`the collection packets has the option ${foreign}`);
  if (Object.keys(validator).length > 0 && !packets.refusesInserts) {
    throw new CannotCompressError('the collection packets has a validator');
  }
  const freeBytes = await readFreeBytes(database);
  if (freeBytes !== null && freeBytes < neededBytes) {
    throw new CannotCompressError(`the disk has ${freeBytes} bytes free; the copy may need ${neededBytes}`);
  }
}

/** Copies all packets, with pauses, and applies the changes that happen meanwhile. */
export function copyAll(work: Work, move: Move, state: Compression): Promise<void> {
  return withTail(work, state, async (tail) => {
    const keepOpen = createReopener(work, move);
    let reached: Pick<Compression, 'from' | 'copied'> = state;
    let behindMs = 0;
    while (!work.signal.aborted) {
      const startMs = performance.now();
      await keepOpen();
      const next = await copyNext(work, move, { ...state, ...reached });
      work.onProgress({ ...state, copied: next.copied }, behindMs);
      if (next.stage !== 'copying') return;
      reached = next;
      const page = await follow(work, move, { tail, range: { from: next.from, end: state.end } });
      behindMs = page.behindMs;
      if (page.isLast) await rest(work, startMs);
    }
  });
}

/** Compares all packets with the copy. */
export function compareAll(work: Work, move: Move, state: Compression): Promise<void> {
  return withTail(work, state, async (tail) => {
    const keepOpen = createReopener(work, move);
    let from = state.from;
    let repaired = 0;
    while (!work.signal.aborted) {
      const startMs = performance.now();
      await keepOpen();
      const { isLast, behindMs } = await follow(work, move, { tail, range: null });
      const range = await compareNext(work, move, { from, end: state.end });
      repaired += range.differing;
      from = range.from;
      work.onProgress(state, behindMs);
      if (from === null) {
        work.log.info({ repaired }, 'compared the packets with their copy');
        return advance(work.database, work.owner, { stage: 'exchanging' });
      }
      if (isLast) await rest(work, startMs);
    }
  });
}

/** Undoes, now and then, a refusal that a former owner was late with: it would last until the exchange. */
function createReopener({ database }: Work, { packets }: Move): () => Promise<void> {
  let checkedMs = Number.NEGATIVE_INFINITY;
  return async () => {
    if (performance.now() - checkedMs < LIMITS.compressionCheckMs) return;
    checkedMs = performance.now();
    if ((await readCatalog(database)).packets?.refusesInserts) await acceptInserts(database, packets);
  };
}

/** Only who keeps up rests. */
const rest = ({ signal }: Work, startMs: number): Promise<void> =>
  wait((performance.now() - startMs) * LIMITS.compressionPauseRatio, undefined, { signal }).catch(() => undefined);
