/**
 * The end of the compression: the copy takes the place of the collection. As before, what is to do next follows from the collections
 * and the stored state alone.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { unavailable } from '../../errors.js';
import { LIMITS } from '../../model/limits.js';
import {
  acceptInserts,
  copyIndexes,
  exchange,
  readCatalog,
  readStorage,
  refuseInserts,
  renameCopy,
  type Stored,
} from './catalog.js';
import { catchUp, drain, mirrorPage, withTail } from './following.js';
import { hasOlderInstance, OLDER_INSTANCE } from './instances.js';
import { type Move, settleLast } from './moves.js';
import { advance, CannotCompressError, type Compression, keepCompression } from './state.js';
import { isHistoryLost } from './tail.js';
import type { Work } from './work.js';

/**
 * Refuses inserts, applies the last changes, and exchanges the collections. The copy refuses inserts as well, until `finish`. If
 * the exchange does not succeed in time, inserts are accepted again, after the copy has got another name: an exchange under that
 * name that is still under way cannot happen any more.
 */
export async function exchangeThem(work: Work, { packets, copy }: Move, state: Compression): Promise<void> {
  if (state.attempts >= LIMITS.compressionExchanges) {
    throw new CannotCompressError(`the collections could not be exchanged in ${state.attempts} attempts`);
  }
  // Each attempt may stop inserts for seconds.
  const pauseMs = state.attempts * LIMITS.compressionExchangePauseMs;
  await wait(pauseMs, undefined, { signal: work.signal }).catch(() => undefined);
  if (work.signal.aborted) return;
  await withTail(work, state, async (tail) => {
    const { database } = work;
    const move = { packets, copy };
    await copyIndexes(database, copy);
    await catchUp(work, move, { tail, state });
    // It may have been started since; its end is worth waiting for.
    if (await hasOlderInstance(database)) throw unavailable(OLDER_INSTANCE);
    await advance(database, work.owner, { attempts: state.attempts + 1 });
    const startMs = performance.now();
    try {
      await refuseInserts(database, packets);
      const isLate = (): boolean => performance.now() - startMs > LIMITS.compressionStopMs;
      await drain(work, tail, (page) => {
        if (isLate()) throw unavailable('the last changes of packets take too long');
        return mirrorPage(work, move, page);
      });
      if (isLate() || work.signal.aborted) throw unavailable('the last changes of packets took too long');
      await exchange(database, copy, packets);
      work.log.info({ refusedMs: Math.round(performance.now() - startMs) }, 'exchanged the packets for their copy');
    } catch (error) {
      if (!work.lost.aborted) await reopen(work, move);
      throw error;
    }
  });
}

async function reopen({ database }: Work, { packets, copy }: Move): Promise<void> {
  const present = await readCatalog(database);
  // It happened after all.
  if (present.packets?.uuid.equals(copy.uuid)) return;
  await renameCopy(database, copy);
  await acceptInserts(database, packets);
}

/**
 * After the exchange: applies the removals of the last moment, and accepts inserts. If they are accepted already, a former owner has
 * done both, and later removals concern packets of the copy, which may have been stored again since.
 */
export async function finish(work: Work, packets: Stored, state: Compression): Promise<void> {
  const { database, owner } = work;
  await keepCompression(database, owner);
  if (packets.refusesInserts) await settle(work, packets, state);
  if (work.signal.aborted) return;
  const { bytes: bytesAfter } = await readStorage(database);
  await advance(database, owner, { stage: 'done', bytesAfter, token: null });
  work.log.info({ bytes: state.bytes, bytesAfter }, 'compressed packets');
}

async function settle(work: Work, packets: Stored, state: Compression): Promise<void> {
  try {
    await withTail(work, state, (tail) =>
      drain(work, tail, ({ touched, token }) => settleLast(work, packets, { touched, progress: { token } })),
    );
  } catch (error) {
    if (!isHistoryLost(error)) throw error;
    work.log.warn({ err: error }, 'packets that were removed in the last moment of the compression may be there again');
  }
  if (!work.signal.aborted) await acceptInserts(work.database, packets);
}
