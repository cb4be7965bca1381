/**
 * Replays: events of the past, for one handler. They are read in turns, by one instance at a time, and no faster than the
 * receiver takes them, so that a long one delays neither others nor what happens meanwhile.
 */

import type { OpenHistory } from '../core/change.js';
import { badRequest, conflict } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { acquireLease } from '../platform/mongo/driver/lease.js';
import { HANDED_OVER, insertReplayed } from './deliveries.js';
import { countPending } from './delivery-upkeep.js';
import { loadHandler } from './handlers.js';
import type { Registry } from './registry.js';
import type { ReplayRange } from './replay.js';
import { type ReplayParts, readReplay } from './replay-messages.js';
import { advanceReplay, loadReplays, type Replay, removeReplay, storeReplay } from './replay-store.js';

export interface ReplayOptions extends ReplayParts {
  readonly registry: Registry;
  /** Up to where everything has happened. */
  readonly livePosition: () => string;
  /** Told of a replay that is over, with the reason where it is not complete. May be told again after a crash. */
  readonly onReplayed: (replay: Replay, reason: string | null) => Promise<void>;
  readonly log: { warn(details: object, message: string): void };
}

/** Stores a replay, which begins soon. False where nothing can be sent to the handler. Throws 400, 409, 429, 503. */
export async function requestReplay(
  { database, openHistory, livePosition, now }: ReplayOptions,
  { handlerId, range, by }: { handlerId: string; range: ReplayRange; by: Replay['by'] },
): Promise<boolean> {
  const handler = await loadHandler(database, handlerId);
  if (handler === null) return false;
  // It would wait for days in the place of others.
  if (handler.fields.active === false) throw conflict('the handler is not active');
  const until = livePosition();
  const { since } = range;
  if (since !== null && !(await mapDriverErrors(() => isInHistory(openHistory, since), LIMITS.databaseOperationMs))) {
    throw badRequest('since: the history no longer reaches back to this position; use from');
  }
  const { tenantId, handover } = handler;
  await storeReplay(database, { handlerId, tenantId, handover, range, until, by, timeMs: now() });
  return true;
}

async function isInHistory(openHistory: OpenHistory, position: string): Promise<boolean> {
  const history = await openHistory(position);
  if (history === null) return false;
  // Only a generator that has begun closes what it reads.
  for await (const _ of history) break;
  return true;
}

/** Works on replays until it is stopped. */
export function startReplays(options: ReplayOptions): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const running = run(options, stopping.signal);
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

async function run(options: ReplayOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      if ((await loadReplays(options.database)).length > 0) await workInTurn(options, signal);
    } catch (error) {
      if (!signal.aborted) options.log.warn({ err: error }, 'failed to continue replays of webhooks; retrying');
    }
    await rest(LIMITS.webhookReplayCheckMs, signal);
  }
}

const rest = (ms: number, signal: AbortSignal): Promise<void> => clock.wait(ms, { signal }).catch(() => undefined);

/** One instance at a time, until none is left. */
async function workInTurn(options: ReplayOptions, signal: AbortSignal): Promise<void> {
  const lease = await acquireLease(options.database, 'replays', LIMITS.leaseMs);
  if (lease === null) return;
  const until = AbortSignal.any([signal, lease.lost]);
  try {
    while (!until.aborted) {
      const startMs = clock.steadyMs();
      const replays = await loadReplays(options.database);
      if (replays.length === 0) return;
      let isIdle = true;
      for (const replay of replays) {
        if (until.aborted) return;
        if (await takeStep(options, replay)) isIdle = false;
      }
      // As long as it worked, or until receivers may have taken what waits.
      await rest(isIdle ? LIMITS.webhookReplayCheckMs : clock.steadyMs() - startMs, until);
    }
  } finally {
    await lease.release();
  }
}

/** Whether there was something to do. A replay that fails does not keep others from going on. */
async function takeStep(options: ReplayOptions, replay: Replay): Promise<boolean> {
  const { database, registry, log, now } = options;
  const webhook = registry.find(replay.handlerId);
  try {
    if (webhook === undefined) {
      // This instance may not have heard of it yet.
      const isGone = (await loadHandler(database, replay.handlerId)) === null;
      return isGone && (await end(options, replay, 'the handler is gone'));
    }
    if (webhook.stored.handover !== replay.handover) {
      // This instance may not have heard of its new hands yet.
      const isOther = (await loadHandler(database, replay.handlerId))?.handover !== replay.handover;
      return isOther && (await end(options, replay, HANDED_OVER));
    }
    if (now() - replay.timeMs > LIMITS.webhookLifetimeMs) return await end(options, replay, 'it took too long');
    if (!webhook.settings.isActive || webhook.rights === null) return false;
    const waiting = await countPending(database, replay.handlerId, LIMITS.webhookReplayAhead);
    if (waiting >= LIMITS.webhookReplayAhead) return false;
    const { deliveries, place } = await readReplay(options, webhook, replay);
    await insertReplayed(database, deliveries);
    const messages = replay.messages + deliveries.length;
    if (place === null || place === 'gone') {
      return await end(options, { ...replay, messages }, place === null ? null : 'the history is gone');
    }
    return await advanceReplay(database, replay, { place, messages });
  } catch (error) {
    log.warn({ err: error, handler: replay.handlerId }, 'failed to continue a replay; retrying');
    return false;
  }
}

async function end({ database, onReplayed }: ReplayOptions, replay: Replay, reason: string | null): Promise<true> {
  await onReplayed(replay, reason);
  await removeReplay(database, replay.id);
  return true;
}
