/** The live feed: receives changes in order and publishes their events to subscribers of every transport. */

import type { Change } from '../core/change.js';
import { tooManyRequests } from '../core/errors.js';
import type { Listen } from '../core/feed.js';
import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';
import { type BackfillOptions, createBackfill, isLongAgo, type ResumingClient } from './backfill.js';
import { isOfObject, type LiveEvent, objectsOf, toEvents } from './events.js';
import { createFanOut, type FanOut } from './fanout.js';
import { createReplayBuffer } from './replay-buffer.js';
import type { Subscriber } from './subscriber.js';
import { createSubscriptions, type SubscriptionOptions, type Subscriptions } from './subscriptions.js';

export interface FeedOptions
  extends SubscriptionOptions,
    Pick<BackfillOptions, 'openHistory' | 'findAudience' | 'prepareAudiences' | 'isLive'> {}

export interface Feed {
  /**
   * Sets the position at which the sequence of changes begins. Ends all subscribers with their positions: their clients reconnect
   * and receive the missed events, or a gap.
   */
  begin(position: string): void;
  /** Loads the audiences of the objects of these changes with one query. Throws 503. */
  prepare(changes: readonly Change[]): Promise<void>;
  /**
   * Publishes the events of a change to permitted subscribers, after it has applied the change to the subscribers themselves, such as
   * an ended session. Resolves with the events. Throws 503 before anything is published if the audience cannot be loaded.
   */
  publish(change: Change): Promise<readonly LiveEvent[]>;
  /** Called when a change is unknown: what was found for subscribers is looked up again when their rights change. */
  forget(): void;
  readonly listen: Listen;
  stats(): { readonly listeners: number };
  stop(): void;
}

export function createFeed(options: FeedOptions): Feed {
  const fanOut = createFanOut();
  const listeners = createSubscriptions(options, fanOut);
  let last: { readonly position: string } = { position: '' };
  const yieldIfLong = createYielder();
  const lastPosition = (): string => last.position;
  const recent = createReplayBuffer(lastPosition);
  const hasListeners = createListenerCheck(listeners.count);
  const backfill = createBackfill({ ...options, openRecent: recent.open, lastPosition });
  const publish = async (change: Change): Promise<readonly LiveEvent[]> => {
    await listeners.apply(change);
    const audience = isOfObject(change) ? await options.findAudience(String(change.objectId)) : null;
    const events = toEvents(change, audience);
    for (const event of events) fanOut.publish(event);
    if (hasListeners()) recent.add(change);
    else recent.rest();
    last = change;
    await yieldIfLong();
    return events;
  };
  return {
    begin(position) {
      listeners.endAll();
      last = { position };
      recent.begin(position);
    },
    prepare: (changes) => options.prepareAudiences(objectsOf(changes)),
    publish,
    forget: listeners.forget,
    listen: createListen({ fanOut, listeners, lastPosition, backfill }),
    stats: () => ({ listeners: listeners.count() }),
    stop() {
      fanOut.stop();
      listeners.endAll();
    },
  };
}

/**
 * Yields to the event loop during long bursts of changes. Changes within one short turn are published without yielding, so that they
 * are written together.
 */
function createYielder(): () => Promise<void> | undefined {
  let sinceMs: number | null = null;
  const reset = (): void => {
    sinceMs = null;
  };
  return () => {
    if (sinceMs === null) {
      sinceMs = clock.steadyMs();
      clock.setImmediate(reset);
    }
    return clock.steadyMs() - sinceMs > LIMITS.turnMs ? clock.nextTurn() : undefined;
  };
}

/** Whether there are subscribers, or were recently, so that they may reconnect. */
function createListenerCheck(count: () => number): () => boolean {
  let lastMs = clock.steadyMs();
  return () => {
    const nowMs = clock.steadyMs();
    if (count() > 0) lastMs = nowMs;
    return nowMs - lastMs <= LIMITS.replayBufferIdleMs;
  };
}

interface ListenDeps {
  readonly fanOut: FanOut;
  readonly listeners: Subscriptions;
  readonly lastPosition: () => string;
  readonly backfill: (client: ResumingClient) => void;
}

function createListen(deps: ListenDeps): Listen {
  const { fanOut, listeners, lastPosition, backfill } = deps;
  return async (request) => {
    const listener = await listeners.authenticate(request);
    checkResuming(deps, listener);
    return {
      userId: listener.caller.userId,
      position: () => (listener.live ? lastPosition() : (listener.upTo ?? request.since ?? lastPosition())),
      start() {
        listeners.start(listener);
        if (request.since === null) join(deps, listener);
        else backfill(toResumingClient(deps, listener, request.since));
      },
      setFilter: (wanted) => listeners.setFilter(listener, wanted),
      flush: () => fanOut.flush(listener.member),
      close: () => listeners.remove(listener),
    };
  };
}

/** Limits the clients of a user that resume from an old position, since reading the oplog is expensive. */
function checkResuming({ listeners, lastPosition }: ListenDeps, listener: Subscriber): void {
  const isResuming = ({ live, caller, request: { since } }: Subscriber): boolean =>
    !live && since !== null && caller.userId === listener.caller.userId && isLongAgo(since, lastPosition());
  if (!isResuming(listener) || listeners.countOf(isResuming) <= LIMITS.returningPerUser) return;
  listeners.remove(listener);
  throw tooManyRequests(1, 'too many clients of this user resume from an old position at the same time');
}

function join({ fanOut, listeners, lastPosition }: ListenDeps, listener: Subscriber): void {
  fanOut.flush(listener.member);
  listeners.join(listener);
  listener.sink.joined(lastPosition());
}

function toResumingClient(deps: ListenDeps, listener: Subscriber, since: string): ResumingClient {
  const { fanOut, listeners } = deps;
  return {
    userId: listener.caller.userId,
    get since() {
      return listener.upTo ?? since;
    },
    isGone: () => listener.gone,
    presence: () => listener,
    send(event) {
      listener.upTo = event.position;
      fanOut.publishTo(listener.member, event);
    },
    passed(position) {
      listener.upTo = position;
    },
    async drained() {
      fanOut.flush(listener.member);
      const untilMs = clock.steadyMs() + LIMITS.slowMs;
      while (!listener.gone && !listener.sink.isDrained()) {
        if (clock.steadyMs() > untilMs) listeners.end(listener);
        else await clock.wait(LIMITS.historyWaitMs);
      }
      return !listener.gone;
    },
    join: () => join(deps, listener),
    end: () => listeners.end(listener),
    gap: (reason) => listener.sink.gap({ reason, from: listener.upTo ?? since }),
  };
}
