/**
 * Brings clients that come back with a position up to the present: what came after it is read again from the database's
 * log and told in order, until it is what the hub has told the others; then they hear the hub. No seam: whatever is not
 * told here before they join is told by the hub after.
 */
import { setTimeout as wait, setImmediate as yieldTurn } from 'node:timers/promises';
import type { Change, OpenHistory } from '../model/change.js';
import type { Gap } from '../model/feed.js';
import { LIMITS } from '../model/limits.js';
import { isAfter, isPosition } from '../model/position.js';
import { type LiveEvent, toEvents } from './events.js';
import { roomsFor } from './rooms.js';

/** A client that was away. */
export interface Returning {
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
  readonly log: { warn(details: object, message: string): void };
}

type TakeIn = (client: Returning) => void;

/**
 * Takes a client in. Those who come while others are being served wait, and then share one reading: of memory, if they
 * were away only for moments, or else of the log.
 */
export function createCatchUp(options: CatchUpOptions): TakeIn {
  const takeIn: TakeIn = (client) => {
    if (!isPosition(client.since)) leave(client, 'unknown position');
    else if (isAfter(client.since, options.told())) waitForHub(client);
    else if (options.openRecent(client.since) !== null) fromMemory(client);
    else fromLog(client);
  };
  const parts: Parts = { ...options, takeIn };
  const waitForHub = createWaitingRoom(parts);
  const fromLog = createQueue(LIMITS.historiesAtOnce, (group) => serve(parts, options.openHistory, group));
  const fromMemory = createQueue(1, async (group) => {
    const inMemory = group.filter(({ since }) => options.openRecent(since) !== null);
    // It was too long ago meanwhile.
    for (const client of group) if (!inMemory.includes(client)) fromLog(client);
    await serve(parts, async (since) => options.openRecent(since), inMemory);
  });
  return takeIn;
}

interface Parts extends CatchUpOptions {
  /** For those who go on by themselves. */
  readonly takeIn: TakeIn;
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

/** Serves groups of clients: everyone who came while `atOnce` groups were being served is the next one. */
function createQueue(atOnce: number, serveGroup: (group: Returning[]) => Promise<void>): (client: Returning) => void {
  let waiting: Returning[] = [];
  let serving = 0;
  const serveNext = async (): Promise<void> => {
    serving++;
    while (waiting.length > 0) {
      const group = waiting;
      waiting = [];
      await serveGroup(group);
    }
    serving--;
  };
  return (client) => {
    waiting.push(client);
    // In the next turn, so that all who come in this one are one group.
    if (serving < atOnce && waiting.length === 1) setImmediate(() => void serveNext());
  };
}

function leave(client: Returning, reason: Gap['reason']): void {
  if (client.isGone()) return;
  client.gap(reason);
  client.join();
}

async function serve(parts: Parts, open: OpenHistory, group: readonly Returning[]): Promise<void> {
  const clients = new Set(group.filter((client) => !client.isGone()));
  if (clients.size === 0) return;
  try {
    const first = [...clients].map(({ since }) => since).reduce((a, b) => (isAfter(a, b) ? b : a));
    const history = await open(first);
    if (history !== null) await follow(parts, clients, history);
    // A position that nobody knows is no reason to give the others up.
    else if (group.length > 1) for (const client of group) await serve(parts, open, [client]);
    else for (const client of group) leave(client, 'history gone');
  } catch (error) {
    parts.log.warn({ err: error }, 'clients could not be told what they missed: they have to come back');
    for (const client of clients) client.end();
  }
}

type History = NonNullable<Awaited<ReturnType<OpenHistory>>>;

async function follow(parts: Parts, clients: Set<Returning>, history: History): Promise<void> {
  for await (const { changes, upTo } of history) {
    for (const change of changes) {
      // What the hub has not told yet they hear from the hub.
      if (isAfter(change.position, parts.told())) joinAll(clients);
      if (clients.size === 0) return;
      await tellChange(parts, clients, change);
    }
    for (const client of clients) if (isAfter(upTo, client.since)) client.passed(upTo);
    // Before anything is waited for: the hub may tell more all the time.
    if (!isAfter(parts.told(), upTo)) joinAll(clients);
    // Those who listen live must not wait for those who come back.
    await yieldTurn();
    await leaveSlow(parts, clients);
    if (clients.size === 0) return;
  }
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
      if (isAfter(change.position, client.since) && !client.isGone() && client.isIn(rooms)) client.tell(event);
    }
  }
}
