/** The feed: changes come in one by one, and listeners of every transport are told what they may hear of them. */
import { setTimeout as wait, setImmediate as yieldTurn } from 'node:timers/promises';
import { tooManyRequests } from '../errors.js';
import type { Change } from '../model/change.js';
import type { Listen } from '../model/feed.js';
import { LIMITS } from '../model/limits.js';
import { type CatchUpOptions, createCatchUp, isLongAgo, type Returning } from './catchup.js';
import { isOfObject, type LiveEvent, objectsOf, toEvents } from './events.js';
import { createFanOut, type FanOut } from './fanout.js';
import { createListeners, type Listener, type ListenerOptions, type Listeners } from './listeners.js';
import { createRecent } from './recent.js';

export interface HubOptions
  extends ListenerOptions,
    Pick<CatchUpOptions, 'openHistory' | 'findReaders' | 'prepareReaders'> {}

export interface Hub {
  /**
   * Where the sequence of changes begins: nothing before is told to anyone but those who come back. Every listener ends,
   * with the position it has: so clients come back and are told what was missed, or that there is a gap.
   */
  begin(position: string): void;
  /** Looks for the readers of all that these changes are about, in one question. Throws 503. */
  prepare(changes: readonly Change[]): Promise<void>;
  /**
   * Tells the change to those who may hear it. Before that it obeys it: a session that ended, a right that is gone. Throws
   * 503 when it cannot be known who may hear it; then nothing was told. Resolves with the events it became.
   */
  tell(change: Change): Promise<readonly LiveEvent[]>;
  readonly listen: Listen;
  /** How many listen. */
  stats(): { readonly listeners: number };
  stop(): void;
}

export function createHub(options: HubOptions): Hub {
  const fanOut = createFanOut();
  const listeners = createListeners(options, fanOut);
  let last: { readonly position: string } = { position: '' };
  const takeTurns = createTurns();
  const told = (): string => last.position;
  const recent = createRecent(told);
  const isHeard = createHeard(listeners.count);
  const catchUp = createCatchUp({ ...options, openRecent: recent.open, told });
  const tell = async (change: Change): Promise<readonly LiveEvent[]> => {
    await listeners.apply(change);
    const readers = isOfObject(change) ? await options.findReaders(String(change.objectId)) : null;
    const events = toEvents(change, readers);
    for (const event of events) fanOut.tell(event);
    if (isHeard()) recent.note(change);
    else recent.rest();
    last = change;
    await takeTurns();
    return events;
  };
  return {
    begin(position) {
      listeners.endAll();
      last = { position };
      recent.begin(position);
    },
    prepare: (changes) => options.prepareReaders(objectsOf(changes)),
    tell,
    listen: createListen({ fanOut, listeners, told, catchUp }),
    stats: () => ({ listeners: listeners.count() }),
    stop() {
      fanOut.stop();
      listeners.endAll();
    },
  };
}

/**
 * A burst must not keep everything else waiting: gives others their turn of the event loop when this one was long. What comes
 * in one short turn is told in one go.
 */
function createTurns(): () => Promise<void> | undefined {
  let sinceMs: number | null = null;
  const forget = (): void => {
    sinceMs = null;
  };
  return () => {
    if (sinceMs === null) {
      sinceMs = performance.now();
      setImmediate(forget);
    }
    return performance.now() - sinceMs > LIMITS.turnMs ? yieldTurn() : undefined;
  };
}

/** Whether somebody listens, or did a while ago and may come back. */
function createHeard(count: () => number): () => boolean {
  let atMs = performance.now();
  return () => {
    const nowMs = performance.now();
    if (count() > 0) atMs = nowMs;
    return nowMs - atMs <= LIMITS.recentUnheardMs;
  };
}

interface ListenParts {
  readonly fanOut: FanOut;
  readonly listeners: Listeners;
  readonly told: () => string;
  readonly catchUp: (client: Returning) => void;
}

function createListen(parts: ListenParts): Listen {
  const { fanOut, listeners, told, catchUp } = parts;
  return async (request) => {
    const listener = await listeners.admit(request);
    checkReturning(parts, listener);
    return {
      userId: listener.caller.userId,
      position: () => (listener.live ? told() : (listener.upTo ?? request.since ?? told())),
      start() {
        listeners.start(listener);
        if (request.since === null) join(parts, listener);
        else catchUp(toReturning(parts, listener, request.since));
      },
      narrow: (wanted) => listeners.narrow(listener, wanted),
      flush: () => fanOut.flush(listener.member),
      close: () => listeners.remove(listener),
    };
  };
}

/** Reading much of the log is work: so many clients of a user are brought up to the present from long ago at once. */
function checkReturning({ listeners, told }: ListenParts, listener: Listener): void {
  const isReturning = ({ live, caller, request: { since } }: Listener): boolean =>
    !live && since !== null && caller.userId === listener.caller.userId && isLongAgo(since, told());
  if (!isReturning(listener) || listeners.countOf(isReturning) <= LIMITS.returningPerUser) return;
  listeners.remove(listener);
  throw tooManyRequests(1, 'too many clients of this user come back from long ago at once');
}

function join({ fanOut, listeners, told }: ListenParts, listener: Listener): void {
  fanOut.flush(listener.member);
  listeners.join(listener);
  listener.sink.joined(told());
}

function toReturning(parts: ListenParts, listener: Listener, since: string): Returning {
  const { fanOut, listeners } = parts;
  return {
    userId: listener.caller.userId,
    get since() {
      return listener.upTo ?? since;
    },
    isGone: () => listener.gone,
    isIn: (rooms) => rooms.some((room) => listener.rooms.has(room)),
    tell(event) {
      listener.upTo = event.position;
      fanOut.tellOne(listener.member, event);
    },
    passed(position) {
      listener.upTo = position;
    },
    async drained() {
      fanOut.flush(listener.member);
      const untilMs = performance.now() + LIMITS.slowMs;
      while (!listener.gone && !listener.sink.isDrained()) {
        if (performance.now() > untilMs) listeners.end(listener);
        else await wait(LIMITS.historyWaitMs);
      }
      return !listener.gone;
    },
    join: () => join(parts, listener),
    end: () => listeners.end(listener),
    gap: (reason) => listener.sink.gap({ reason, from: listener.upTo ?? since }),
  };
}
