/**
 * Says at objects that the clock of their device is wrong: since when, and in how many packets. The field is written when that begins
 * and ends, and in between now and then, because each change of an object is an event.
 */

import { type AnyBulkWriteOperation, ObjectId } from 'mongodb';
import { type Change, mayHaveChanged } from '../core/change.js';
import { isObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';
import { inBatches } from '../platform/mongo/driver/bulk-queue.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import type { Ingest } from './ingest.js';
import type { Message } from './packet.js';

export interface WrongClockDeps {
  readonly database: Database;
  readonly log: { warn(details: object, message: string): void };
}

export interface WrongClocks {
  /** Notes the clocks of the messages that are stored. */
  noting(ingest: Ingest): Ingest;
  apply(change: Change): void;
  /** For a gap in the change stream. */
  reset(): void;
  start(): void;
  stop(): Promise<void>;
}

/** What is to be written of an object. */
interface Noted {
  /** Null when the clock is right. */
  readonly wrong: { readonly sinceMs: number; readonly packets: number; readonly deviceTimeMs: number } | null;
}

interface State {
  readonly noted: Map<string, Noted>;
  /** The objects that say that their clock is wrong, and when that was written last, by the monotonic clock. */
  readonly wrong: Map<string, number>;
  /** Those that said so until a moment ago, and when that ended: one that is right and wrong in turn is written no more often than any other. */
  readonly ended: Map<string, number>;
  isStale: boolean;
}

export function createWrongClocks({ database, log }: WrongClockDeps): WrongClocks {
  const state: State = { noted: new Map(), wrong: new Map(), ended: new Map(), isStale: true };
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();
  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      try {
        if (state.isStale) await load(database, state);
        await writeDue(database, state);
      } catch (err) {
        if (!stopping.signal.aborted) log.warn({ err }, 'failed to write that clocks are wrong; retrying');
      }
      await clock.wait(LIMITS.wrongClockCheckMs, { signal: stopping.signal }).catch(() => undefined);
    }
  };
  return {
    noting: (ingest) => async (source, messages, options) => {
      const stored = await ingest(source, messages, options);
      note(state, source.objectId, messages, database.clock.now);
      return stored;
    },
    apply(change) {
      if (change.store !== 'objects' || !mayHaveChanged(change, ['wrongClock'])) return;
      if (!isObject(change.after?.wrongClock)) end(state, change.id, clock.steadyMs());
      else if (!state.wrong.has(change.id)) state.wrong.set(change.id, clock.steadyMs());
    },
    reset() {
      state.isStale = true;
    },
    start() {
      running = run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

function note(state: State, objectId: string, messages: readonly Message[], now: () => number): void {
  let packets = 0;
  let last: Message | null = null;
  for (const message of messages) {
    if (message.deviceTimeMs !== undefined) packets++;
    else if (message.timeMs === null) continue;
    last = message;
  }
  if (last === null) return;
  const before = state.noted.get(objectId);
  if (last.deviceTimeMs === undefined) {
    if (before !== undefined || state.wrong.has(objectId)) state.noted.set(objectId, { wrong: null });
    return;
  }
  if (before === undefined && state.noted.size >= LIMITS.wrongClocksNoted) return;
  const { sinceMs, packets: more } = before?.wrong ?? { sinceMs: now(), packets: 0 };
  state.noted.set(objectId, { wrong: { sinceMs, packets: packets + more, deviceTimeMs: last.deviceTimeMs } });
}

async function load({ db }: Database, state: State): Promise<void> {
  state.isStale = false;
  try {
    const filter = { wrongClock: { $type: 'object' } };
    const find = () =>
      db
        .collection('objects')
        .find(filter, { projection: { _id: 1 } })
        .toArray();
    const found = await mapDriverErrors(find, LIMITS.databaseOperationMs);
    for (const { _id } of found) state.wrong.set(String(_id), Number.NEGATIVE_INFINITY);
  } catch (error) {
    state.isStale = true;
    throw error;
  }
}

async function writeDue({ db }: Database, { noted, wrong, ended }: State): Promise<void> {
  const nowMs = clock.steadyMs();
  for (const [id, endedMs] of ended) if (nowMs - endedMs >= LIMITS.wrongClockWrittenMs) ended.delete(id);
  const isDue = ([id, { wrong: found }]: readonly [string, Noted]): boolean =>
    found === null ||
    nowMs - (wrong.get(id) ?? ended.get(id) ?? Number.NEGATIVE_INFINITY) >= LIMITS.wrongClockWrittenMs;
  for (const batch of inBatches([...noted].filter(isDue), LIMITS.presenceBatch)) {
    const writes = batch.map(([id, one]) => toWrite(id, one));
    await mapDriverErrors(() => db.collection('objects').bulkWrite(writes, { ordered: false }), null);
    for (const [id, one] of batch) {
      if (one.wrong !== null) wrong.set(id, nowMs);
      else end({ wrong, ended }, id, nowMs);
      // Otherwise more was noted meanwhile: it counts what was written, too.
      if (noted.get(id) === one) noted.delete(id);
      else noted.set(id, without(noted.get(id), one));
    }
  }
}

function end({ wrong, ended }: Pick<State, 'wrong' | 'ended'>, id: string, nowMs: number): void {
  if (wrong.delete(id)) ended.set(id, nowMs);
}

/** What was noted after `written`. */
function without(noted: Noted | undefined, written: Noted): Noted {
  if (noted?.wrong == null || written.wrong === null) return noted ?? written;
  return { wrong: { ...noted.wrong, packets: noted.wrong.packets - written.wrong.packets } };
}

function toWrite(id: string, { wrong }: Noted): AnyBulkWriteOperation {
  const _id = new ObjectId(id);
  if (wrong === null) {
    return { updateOne: { filter: { _id, wrongClock: { $type: 'object' } }, update: { $set: { wrongClock: null } } } };
  }
  const wrongClock = {
    since: { $ifNull: ['$wrongClock.since', wrong.sinceMs] },
    packets: { $add: [{ $ifNull: ['$wrongClock.packets', 0] }, wrong.packets] },
    deviceTime: wrong.deviceTimeMs,
  };
  return { updateOne: { filter: { _id }, update: [{ $set: { wrongClock } }] } };
}
