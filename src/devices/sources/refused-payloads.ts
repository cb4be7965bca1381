/** The last payloads of each source that could not be stored, with why: only they tell what a sender does wrong. */
import { LIMITS } from '../../core/limits.js';
import {
  createLastRefused,
  forgetLastRefused,
  type LastRefused,
  type LastRefusedOptions,
} from '../../packets/last-refused.js';
import { cutReason } from '../../packets/reasons.js';
import type { Database } from '../../platform/mongo/driver/client.js';

export interface RefusedPayload {
  /** When it arrived. */
  readonly time: number;
  /** The device that the payload names, if it does. */
  readonly device: string | null;
  /** The place among the packets of the request. */
  readonly index: number | null;
  readonly reason: string;
  /** The beginning of what was sent: of the body, or of the query without the key; of one of several samples, its packet. */
  readonly payload: string;
}

/** By the `_id` of the source. */
export type RefusedPayloads = LastRefused<RefusedPayload>;

const COLLECTION = 'refusedPayloads';

export const createRefusedPayloads = (
  options: Pick<LastRefusedOptions<RefusedPayload>, 'database' | 'log' | 'now'>,
): RefusedPayloads =>
  createLastRefused({
    ...options,
    collection: COLLECTION,
    perEntity: LIMITS.refusedPerSource,
    pending: LIMITS.refusedPayloadsPending,
    delayMs: LIMITS.refusedPayloadsDelayMs,
    keptMs: LIMITS.refusedPayloadsKeptMs,
    shorten: (refused) => ({
      ...refused,
      device: refused.device?.slice(0, LIMITS.idCharacters).toWellFormed() ?? null,
      reason: cutReason(refused.reason),
      // Of four bytes each at most, so that all payloads of a source fit in one document.
      payload: refused.payload.slice(0, LIMITS.refusedPayloadBytes / 4).toWellFormed(),
    }),
  });

export const forgetPayloads = (database: Database, sourceId: string): Promise<void> =>
  forgetLastRefused(database, COLLECTION, sourceId);
