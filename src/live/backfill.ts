/**
 * Sends missed events to clients that reconnect with a position. It reads the changes after the position from the oplog and
 * sends their events in order, until it reaches the last position that the feed has published; then the clients join the feed.
 * There is no gap and no overlap: the feed publishes exactly the events that were not sent here.
 */

import type { Change, OpenHistory } from '../core/change.js';
import type { Gap } from '../core/feed.js';
import { LIMITS } from '../core/limits.js';
import { isAfter, isPosition, secondsBetween } from '../core/position.js';
import { clock } from '../platform/clock.js';
import { createBackfillQueue } from './backfill-queue.js';
import { type LiveEvent, objectsOf, toPastEvents } from './events.js';
import { createAudienceTest, type Membership } from './rooms.js';
import { startTurnClock, type TurnClock } from './turn-clock.js';

/** A client that reconnected. */
export interface ResumingClient {
  readonly userId: string;
  /** The position up to which the client has received every event. */
  readonly since: string;
  isGone(): boolean;
  /** Its rooms, by its current permissions and filter. */
  presence(): Membership;
  send(event: LiveEvent): void;
  /** The client has received every event up to this position. */
  passed(position: string): void;
  /** Resolves when the client has read what was sent; false if it does not read, or is full. */
  drained(): Promise<boolean>;
  /** The client receives the feed from now on. Takes effect at once. */
  join(): void;
  /** Disconnects the client; it can reconnect with its position. */
  end(): void;
  /** The events that the client missed are not available. */
  gap(reason: Gap['reason']): void;
}

export interface BackfillOptions {
  readonly openHistory: OpenHistory;
  /** Opens the history in memory; null if the position is no longer there. */
  readonly openRecent: (position: string) => Awaited<ReturnType<OpenHistory>>;
  /** The position up to which the feed has published every change. */
  readonly lastPosition: () => string;
  /** The addresses that may see an object now; null if it was removed. */
  readonly findAudience: (objectId: string) => Promise<readonly string[] | null> | readonly string[] | null;
  /** Loads the audiences of many objects with one query. */
  readonly prepareAudiences: (objectIds: readonly string[]) => Promise<void>;
  /** Whether the change stream delivers. */
  readonly isLive: () => boolean;
  readonly log: { warn(details: object, message: string): void };
}

type Resume = (client: ResumingClient) => void;

/** Whether a position is too old to share a read of the oplog with clients that reconnect after a short interruption. */
export const isLongAgo = (since: string, lastPosition: string): boolean =>
  isPosition(since) && secondsBetween(since, lastPosition) * 1_000 > LIMITS.historyNearMs;

/**
 * Clients with a recent position share one read: of memory, or else of the oplog. Clients with an older position share a read only
 * with clients of the same user, and users take turns.
 */
export function createBackfill(options: BackfillOptions): Resume {
  const resume: Resume = (client) => {
    if (!isPosition(client.since)) leave(client, 'unknown position');
    else if (isAfter(client.since, options.lastPosition())) waitForFeed(client);
    else if (options.openRecent(client.since) !== null) fromMemory.add(client);
    else fromLog(client);
  };
  const deps: BackfillDeps = { ...options, resume, mustLeave: () => false };
  const waitForFeed = createAheadQueue(deps);
  const userOf = ({ userId }: ResumingClient): string => userId;
  const near = createBackfillQueue<ResumingClient>({
    groupsAtOnce: LIMITS.historiesAtOnce,
    isShared: true,
    userOf,
    serve: (group) => serve(deps, options.openHistory, group),
  });
  const far = createBackfillQueue<ResumingClient>({
    groupsAtOnce: LIMITS.historiesAtOnce,
    isShared: false,
    userOf,
    serve: (group) => serve({ ...deps, mustLeave: isOverTime }, options.openHistory, group),
  });
  const isOverTime = (turn: TurnClock): boolean => turn.elapsedMs() > LIMITS.historyTurnMs && far.isWaitedFor();
  const fromLog: Resume = (client) => (isLongAgo(client.since, options.lastPosition()) ? far : near).add(client);
  const fromMemory = createBackfillQueue<ResumingClient>({
    groupsAtOnce: 1,
    isShared: true,
    userOf,
    serve(group) {
      const inMemory = group.filter(({ since }) => options.openRecent(since) !== null);
      // The position has left the memory while the client was waiting.
      for (const client of group) if (!inMemory.includes(client)) fromLog(client);
      return serve(deps, async (since) => options.openRecent(since), inMemory);
    },
  });
  return resume;
}

interface BackfillDeps extends BackfillOptions {
  /** Queues a client again, which continues from its position. */
  readonly resume: Resume;
  /** Whether other users have waited long enough: the current group is then queued again. */
  readonly mustLeave: (turn: TurnClock) => boolean;
}

/**
 * A client of another instance may be ahead of this feed for a moment, and for as long as the change stream does not deliver. A client
 * that stays ahead has a position that no instance has published: it is of another database, or invalid.
 */
function createAheadQueue({ lastPosition, resume, isLive }: BackfillDeps): Resume {
  const untilMs = new Map<ResumingClient, number>();
  const check = async (): Promise<void> => {
    while (untilMs.size > 0) {
      await clock.wait(LIMITS.historyWaitMs);
      const nowMs = clock.steadyMs();
      for (const [client, latestMs] of untilMs) {
        if (!isLive()) untilMs.set(client, nowMs + LIMITS.backfillAheadMs);
        const isAhead = isAfter(client.since, lastPosition());
        const isOver = isLive() && nowMs > latestMs;
        if (isAhead && !isOver && !client.isGone()) continue;
        untilMs.delete(client);
        if (isAhead) leave(client, 'unknown position');
        else resume(client);
      }
    }
  };
  return (client) => {
    untilMs.set(client, clock.steadyMs() + LIMITS.backfillAheadMs);
    if (untilMs.size === 1) void check();
  };
}

function leave(client: ResumingClient, reason: Gap['reason']): void {
  if (client.isGone()) return;
  client.gap(reason);
  client.join();
}

/** Resolves with the busy time, ms. */
async function serve(deps: BackfillDeps, open: OpenHistory, group: readonly ResumingClient[]): Promise<number> {
  const clients = new Set(group.filter((client) => !client.isGone()));
  if (clients.size === 0) return 0;
  const turn = startTurnClock();
  try {
    const first = [...clients].map(({ since }) => since).reduce((a, b) => (isAfter(a, b) ? b : a));
    const history = await open(first);
    turn.resume();
    if (history !== null) await follow(deps, { clients, history, turn });
    // One invalid position must not prevent the other clients from resuming.
    else if (group.length > 1) for (const client of group) await serve(deps, open, [client]);
    else for (const client of group) leave(client, 'history gone');
  } catch (error) {
    deps.log.warn({ err: error }, 'failed to send missed events: clients have to reconnect');
    for (const client of clients) client.end();
  }
  return turn.busyMs();
}

interface Reading {
  readonly clients: Set<ResumingClient>;
  readonly history: NonNullable<Awaited<ReturnType<OpenHistory>>>;
  readonly turn: TurnClock;
}

async function follow(deps: BackfillDeps, { clients, history, turn }: Reading): Promise<void> {
  for await (const { changes, upTo } of history) {
    await deps.prepareAudiences(objectsOf(changes));
    turn.resume();
    for (const change of changes) {
      // The feed will publish what it has not published yet.
      if (isAfter(change.position, deps.lastPosition())) joinAll(clients);
      if (clients.size === 0) return;
      await sendChange(deps, clients, change);
      // Live subscribers must not wait for resuming ones.
      await turn.yieldIfLong();
    }
    for (const client of clients) if (isAfter(upTo, client.since)) client.passed(upTo);
    // Before any wait: the feed publishes all the time.
    if (!isAfter(deps.lastPosition(), upTo)) joinAll(clients);
    turn.pause();
    await clock.nextTurn();
    await leaveSlow(deps, clients);
    if (deps.mustLeave(turn)) for (const client of takeAll(clients)) deps.resume(client);
    if (clients.size === 0) return;
  }
}

function takeAll(clients: Set<ResumingClient>): ResumingClient[] {
  const all = [...clients];
  clients.clear();
  return all;
}

/** Slow clients do not delay others: a client that has not read its events continues alone once it has. */
async function leaveSlow({ resume }: BackfillDeps, clients: Set<ResumingClient>): Promise<void> {
  const slow = new Set(clients);
  const taking = [...clients].map(async (client) => {
    const stays = await client.drained();
    if (!slow.delete(client)) resume(client);
    else if (!stays) clients.delete(client);
  });
  const inTime = new AbortController();
  const patience = clock.wait(LIMITS.backfillWaitMs, { signal: inTime.signal }).catch(() => undefined);
  await Promise.race([Promise.all(taking), patience]);
  inTime.abort();
  for (const client of slow) clients.delete(client);
  slow.clear();
}

function joinAll(clients: Set<ResumingClient>): void {
  for (const client of clients) if (!client.isGone()) client.join();
  clients.clear();
}

async function sendChange(options: BackfillOptions, clients: Set<ResumingClient>, change: Change): Promise<void> {
  for (const client of clients) if (client.isGone()) clients.delete(client);
  if (change.objectId === null) return;
  // Replay uses current permissions, also for events of a time with other permissions.
  const audience = await options.findAudience(change.objectId);
  for (const event of toPastEvents(change, audience)) {
    const isInAudience = createAudienceTest(event);
    for (const client of clients) {
      const isNew = !client.isGone() && isAfter(change.position, client.since);
      if (isNew && isInAudience(client.presence())) client.send(event);
    }
  }
}
