/** One attempt to deliver messages: checks rights, sends, and stores the result. */

import { LIMITS } from '../core/limits.js';
import { findFormerAudience } from '../entities/removed-objects.js';
import { clock } from '../platform/clock.js';
import type { Database } from '../platform/mongo/driver/client.js';
import type { BreakerAttempt } from './breaker.js';
import { assignBatch, type Delivery, type DeliveryResult, HANDED_OVER, newDeliveryId } from './deliveries.js';
import { loadHandler } from './handlers.js';
import { toBatchBody } from './message.js';
import { isSuccess, type Receiver, sendMessage } from './receiver.js';
import type { RequestOutcome } from './request.js';
import type { Results } from './results.js';
import { findRetryDelay, isTooOld } from './schedule.js';
import { isPermitted, maySend, type Webhook } from './webhook.js';

export type Outcome = 'delivered' | 'failed' | 'dead' | 'withheld';

export interface DeliveryParts {
  readonly database: Database;
  readonly results: Results;
  readonly findAudience: (objectId: string) => readonly string[] | null | Promise<readonly string[] | null>;
  /** `delayMs` is how long a message took from its creation until the receiver had it. */
  readonly onOutcome: (outcome: Outcome, count: number, ms: number | null, delayMs?: number) => void;
  /** The receiver answered 410. */
  readonly onGone: (webhook: Webhook) => void;
  readonly log: { warn(details: object, message: string): void };
  readonly now: () => number;
}

export interface Attempt {
  readonly webhook: Webhook;
  readonly receiver: Receiver;
  /** Told how it ended. */
  readonly inBreaker: BreakerAttempt;
  readonly group: readonly Delivery[];
  readonly isBatch: boolean;
  /** Aborted when this instance may no longer send. */
  readonly signal: AbortSignal;
}

const GONE = 410;

/** Resolves when the result is stored. Before that, calls `onEnd` with the pause before the next attempt. */
export async function deliver(
  parts: DeliveryParts,
  attempt: Attempt,
  onEnd: (waitMs: number | null) => void,
): Promise<void> {
  const { inBreaker, signal, webhook } = attempt;
  const divided = await divide(parts, attempt);
  if (divided === null) {
    inBreaker.gaveUp();
    return onEnd(UNTRIED_WAIT_MS);
  }
  const [sent, withheld] = divided;
  const stored = withheld.map(([delivery, reason]) => parts.results.store(toWithheld(delivery, reason, parts.now())));
  if (withheld.length > 0) parts.onOutcome('withheld', withheld.length, null);
  if (sent.length === 0) {
    inBreaker.gaveUp();
    onEnd(null);
    return void (await Promise.all(stored));
  }
  const outcome = await send(parts, attempt, { sent, isWhole: withheld.length === 0 });
  // The receiver may or may not have it: the partition's next owner sends it again.
  if (signal.aborted) {
    inBreaker.gaveUp();
    onEnd(null);
    return;
  }
  const waitMs = isSuccess(outcome) ? null : fail(parts, attempt, outcome, sent);
  if (waitMs === null && isSuccess(outcome)) inBreaker.succeeded();
  if (outcome.status === GONE) parts.onGone(webhook);
  const ended = sent.map((delivery) => toResult(parts, { delivery, outcome, waitMs }));
  onEnd(waitMs);
  await Promise.all([...stored, ...ended.map((result) => parts.results.store(result))]);
}

type Withheld = [delivery: Delivery, reason: string];

/** Divides messages by what the webhook's owner may see now; null where this instance does not know the webhook as it is. */
async function divide(parts: DeliveryParts, { webhook, group }: Attempt): Promise<[Delivery[], Withheld[]] | null> {
  const sent: Delivery[] = [];
  const withheld: Withheld[] = [];
  // This instance may not have heard of its new hands yet.
  const isOther = ({ handover }: Delivery): boolean => handover !== webhook.stored.handover;
  const current = group.some(isOther) ? await loadHandler(parts.database, webhook.stored.id) : null;
  if (current !== null && current.handover !== webhook.stored.handover) return null;
  for (const delivery of group) {
    if (isOther(delivery)) withheld.push([delivery, HANDED_OVER]);
    else if (await isVisible(parts, webhook, delivery)) sent.push(delivery);
    else withheld.push([delivery, 'the owner of the handler may not see the object any more']);
  }
  return [sent, withheld];
}

/** Of an object that was removed, the rights at its removal decide. */
function isVisible(parts: DeliveryParts, webhook: Webhook, { event, objectId }: Delivery): boolean | Promise<boolean> {
  // It says nothing of an object but that it is no longer visible.
  if (event === 'object-removed') return isPermitted(webhook, objectId);
  const found = parts.findAudience(objectId);
  if (found !== null && !(found instanceof Promise)) return maySend(webhook, objectId, found);
  return (async () => {
    const audience = (await found) ?? (await findFormerAudience(parts.database, objectId));
    return audience !== null && maySend(webhook, objectId, audience);
  })();
}

async function send(
  { database, now }: DeliveryParts,
  { webhook, receiver, isBatch, signal }: Attempt,
  { sent, isWhole }: { sent: readonly Delivery[]; isWhole: boolean },
): Promise<RequestOutcome> {
  const [first] = sent as readonly [Delivery, ...Delivery[]];
  if (!isBatch) return sendMessage(receiver, webhook, { id: first.id, body: first.body, nowMs: now(), signal });
  // Some of its messages may have been given up or sent singly since.
  const isSame = isWhole && first.batch?.size === sent.length;
  const id = isSame && first.batch !== null ? first.batch.id : newDeliveryId();
  // Stored before sending, so that a repeated batch has the same id.
  if (id !== first.batch?.id) {
    await assignBatch(
      database,
      sent.map((delivery) => delivery.id),
      id,
    );
  }
  const body = toBatchBody(
    sent.map((delivery) => delivery.body),
    first.timeMs,
  );
  return sendMessage(receiver, webhook, { id, body, nowMs: now(), signal });
}

/** The pause before the next attempt; null if there is none, because every message is given up. */
function fail(
  { log, now, onOutcome }: DeliveryParts,
  { webhook, inBreaker }: Attempt,
  { status, error, ms, retryAfterMs }: RequestOutcome,
  sent: readonly Delivery[],
): number | null {
  inBreaker.failed(retryAfterMs);
  const nowMs = now();
  const dead = sent.filter((delivery) => isTooOld(delivery, nowMs));
  const details = { handler: webhook.stored.id, status, reason: error };
  for (const { id, attempts } of dead) {
    log.warn(
      { ...details, delivery: id, attempts: attempts + 1 },
      'a webhook delivery is dead: it was tried for too long',
    );
  }
  if (dead.length > 0) onOutcome('dead', dead.length, ms);
  if (dead.length === sent.length) return null;
  onOutcome('failed', sent.length - dead.length, ms);
  return findRetryDelay({ attempts: (sent[0] as Delivery).attempts + 1, retryAfterMs }, clock.random());
}

function toResult(
  { now, onOutcome }: DeliveryParts,
  { delivery, outcome, waitMs }: { delivery: Delivery; outcome: RequestOutcome; waitMs: number | null },
): DeliveryResult {
  const { status, error, answer, ms } = outcome;
  const isDelivered = isSuccess(outcome);
  const lastMs = now();
  if (isDelivered) onOutcome('delivered', 1, ms, lastMs - delivery.timeMs);
  // Of a batch only those that are too old are given up.
  const isOver = waitMs === null || isTooOld(delivery, lastMs);
  return {
    id: delivery.id,
    attempts: delivery.attempts + 1,
    status,
    error,
    answer,
    ms,
    lastMs,
    state: isDelivered ? 'delivered' : isOver ? 'dead' : 'pending',
    nextMs: isOver ? null : lastMs + waitMs,
  };
}

const toWithheld = ({ id, attempts }: Delivery, error: string, nowMs: number): DeliveryResult => ({
  id,
  attempts,
  state: 'withheld',
  status: null,
  answer: '',
  ms: 0,
  lastMs: nowMs,
  nextMs: null,
  error,
});

/** The pause after an attempt that could not be made. */
export const UNTRIED_WAIT_MS = LIMITS.partitionTickMs;
