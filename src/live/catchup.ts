/**
 * Brings clients that come back with a position up to the present: what came after it is read again from the database's
 * log and told in order, until it is what the hub has told the others; then they hear the hub. No seam: whatever is not
 * told here before they join is told by the hub after.
 */
import { setTimeout as wait, setImmediate as yieldTurn } from 'node:timers/promises';
import type { Change, OpenHistory } from '../model/change.js';
import type { Gap } from '../model/feed.js';
import { LIMITS } from '../model/limits.js';
import { isAfter, isPosition, secondsBetween } from '../model/position.js';
import { createBackfillQueue } from './backfill-queue.js';
import { type LiveEvent, objectsOf, toEvents } from './events.js';
import { roomsFor } from './rooms.js';
import { startTurnClock, type TurnClock } from './turn-clock.js';

/** A client that was away. */
export interface Returning {
  readonly userId: string;
  /** Up to where it was told everything. */
  readonly since: string;
  isGone(): boolean;
  /** Whether it may hear what goes to these rooms and wants to, by what holds now. */
  isIn(rooms: readonly string[]): boolean;
  tell(event: LiveEvent): void;
  /** It was told all there is up to here. */
  passed(position: string): void;
  /** Resolves when it has taken what it was told; false when it does not, or has enough. */
  drained(): Promise<boolean>;
  /** From now on it hears the hub. Acts at once. */
  join(): void;
  /** Lets it come back later, with its position. */
  end(): void;
  /** What it missed cannot be told. */
  gap(reason: Gap['reason']): void;
}

export interface CatchUpOptions {
  readonly openHistory: OpenHistory;
  /** The same from memory; null when it is too long ago for that. */
  readonly openRecent: (position: string) => Awaited<ReturnType<OpenHistory>>;
  /** The position up to which the hub has told everything. */
  readonly told: () => string;
  /** Those who may see an object now; null when it is gone. */
  readonly findReaders: (objectId: string) => Promise<readonly string[] | null> | readonly string[] | null;
  /** Looks for those of many objects together. */
  readonly prepareReaders: (objectIds: readonly string[]) => Promise<void>;
  readonly log: { warn(details: object, message: string): void };
}

type TakeIn = (client: Returning) => void;

/** Whether what came after the position is read by itself: whoever was away for moments does not wait for that. */
export const isLongAgo = (since: string, told: string): boolean =>
  isPosition(since) && secondsBetween(since, told) * 1_000 > LIMITS.historyNearMs;

/**
 * Takes a client in. Those who were away for moments wait while others are being served, and then share one reading: of memory,
 * or else of the log. Who was away for longer shares it with clients of the same user alone, and users take turns.
 */
export function createCatchUp(options: CatchUpOptions): TakeIn {
  const takeIn: TakeIn = (client) => {
    if (!isPosition(client.since)) leave(client, 'unknown position');
    else if (isAfter(client.since, options.told())) waitForHub(client);
    else if (options.openRecent(client.since) !== null) fromMemory.add(client);
    else fromLog(client);
  };
  const parts: Parts = { ...options, takeIn, mustLeave: () => false };
  const waitForHub = createWaitingRoom(parts);
  const userOf = ({ userId }: Returning): string => userId;
  const near = createBackfillQueue<Returning>({
    ...{ groupsAtOnce: LIMITS.historiesAtOnce, isShared: true, userOf },
    serve: (group) => serve(parts, options.openHistory, group),
  });
  const far = createBackfillQueue<Returning>({
    ...{ groupsAtOnce: LIMITS.historiesAtOnce, isShared: false, userOf },
    serve: (group) => serve({ ...parts, mustLeave: isOverTime }, options.openHistory, group),
  });
  const isOverTime = (clock: TurnClock): boolean => clock.elapsedMs() > LIMITS.historyTurnMs && far.isWaitedFor();
  const fromLog: TakeIn = (client) => (isLongAgo(client.since, options.told()) ? far : near).add(client);
  const fromMemory = createBackfillQueue<Returning>({
    ...{ groupsAtOnce: 1, isShared: true, userOf },
    serve(group) {
      const inMemory = group.filter(({ since }) => options.openRecent(since) !== null);
      // It was too long ago meanwhile.
      for (const client of group) if (!inMemory.includes(client)) fromLog(client);
      return serve(parts, async (since) => options.openRecent(since), inMemory);
    },
  });
  return takeIn;
}

interface Parts extends CatchUpOptions {
  /** For those who go on by themselves. */
  readonly takeIn: TakeIn;
  /** Whether others have waited for long enough: those who are served wait again, and go on from where they are. */
  readonly mustLeave: (clock: TurnClock) => boolean;
}

/**
 * Who comes from another instance may be ahead of this hub for a moment. Who stays ahead comes from a position that no
 * instance can have told: of another database, or none.
 */
function createWaitingRoom({ told, takeIn }: Parts): TakeIn {
  const untilMs = new Map<Returning, number>();
  const look = async (): Promise<void> => {
    while (untilMs.size > 0) {
      await wait(LIMITS.historyWaitMs);
      for (const [client, latestMs] of untilMs) {
        const isAhead = isAfter(client.since, told());
        const isOver = performance.now() > latestMs;
        if (isAhead && !isOver && !client.isGone()) continue;
        untilMs.delete(client);
        if (isAhead) leave(client, 'unknown position');
        else takeIn(client);
      }
    }
  };
  return (client) => {
    untilMs.set(client, performance.now() + LIMITS.historyAheadMs);
    if (untilMs.size === 1) void look();
  };
}

function leave(client: Returning, reason: Gap['reason']): void {
  if (client.isGone()) return;
  client.gap(reason);
  client.join();
}

/** Gives how long it kept the process busy, ms. */
async function serve(parts: Parts, open: OpenHistory, group: readonly Returning[]): Promise<number> {
  const clients = new Set(group.filter((client) => !client.isGone()));
  if (clients.size === 0) return 0;
  const clock = startTurnClock();
  try {
    const first = [...clients].map(({ since }) => since).reduce((a, b) => (isAfter(a, b) ? b : a));
    const history = await open(first);
    clock.resume();
    if (history !== null) await follow(parts, { clients, history, clock });
    // A position that nobody knows is no reason to give the others up.
    else if (group.length > 1) for (const client of group) await serve(parts, open, [client]);
    else for (const client of group) leave(client, 'history gone');
  } catch (error) {
    parts.log.warn({ err: error }, 'clients could not be told what they missed: they have to come back');
    for (const client of clients) client.end();
  }
  return clock.busyMs();
}

interface Reading {
  readonly clients: Set<Returning>;
  readonly history: NonNullable<Awaited<ReturnType<OpenHistory>>>;
  readonly clock: TurnClock;
}

async function follow(parts: Parts, { clients, history, clock }: Reading): Promise<void> {
  for await (const { changes, upTo } of history) {
    await parts.prepareReaders(objectsOf(changes));
    clock.resume();
    for (const change of changes) {
      // What the hub has not told yet they hear from the hub.
      if (isAfter(change.position, parts.told())) joinAll(clients);
      if (clients.size === 0) return;
      await tellChange(parts, clients, change);
      // Those who listen live must not wait for those who come back.
      await clock.breathe();
    }
    for (const client of clients) if (isAfter(upTo, client.since)) client.passed(upTo);
    // Before anything is waited for: the hub may tell more all the time.
    if (!isAfter(parts.told(), upTo)) joinAll(clients);
    clock.pause();
    await yieldTurn();
    await leaveSlow(parts, clients);
    if (parts.mustLeave(clock)) for (const client of takeAll(clients)) parts.takeIn(client);
    if (clients.size === 0) return;
  }
}

function takeAll(clients: Set<Returning>): Returning[] {
  const all = [...clients];
  clients.clear();
  return all;
}

/** Nobody waits for long for another one: who has not taken what it was told goes on by itself when it has. */
async function leaveSlow({ takeIn }: Parts, clients: Set<Returning>): Promise<void> {
  const slow = new Set(clients);
  const taking = [...clients].map(async (client) => {
    const stays = await client.drained();
    if (!slow.delete(client)) takeIn(client);
    else if (!stays) clients.delete(client);
  });
  const inTime = new AbortController();
  const patience = wait(LIMITS.historyPatienceMs, undefined, { signal: inTime.signal }).catch(() => undefined);
  await Promise.race([Promise.all(taking), patience]);
  inTime.abort();
  for (const client of slow) clients.delete(client);
  slow.clear();
}

function joinAll(clients: Set<Returning>): void {
  for (const client of clients) if (!client.isGone()) client.join();
  clients.clear();
}

async function tellChange(options: CatchUpOptions, clients: Set<Returning>, change: Change): Promise<void> {
  for (const client of clients) if (client.isGone()) clients.delete(client);
  if (change.objectId === null) return;
  // Those of today, also of what happened when others saw it.
  const readers = await options.findReaders(change.objectId);
  if (readers === null) return;
  for (const event of toEvents(change, readers)) {
    const rooms = roomsFor(event);
    for (const client of clients) {
      if (!client.isGone() && client.isIn(rooms) && isAfter(change.position, client.since)) client.tell(event);
    }
  }
}
