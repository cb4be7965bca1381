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

/**
 * Takes a client in. Those who come while others are being served wait, and then share one reading: of memory, if they
 * were away only for moments, or else of the log.
 */
export function createCatchUp(options: CatchUpOptions): (client: Returning) => void {
  const fromLog = createQueue(LIMITS.historiesAtOnce, (group) => serve(options, options.openHistory, group));
  const fromMemory = createQueue(1, async (group) => {
    const inMemory = group.filter(({ since }) => options.openRecent(since) !== null);
    // It was too long ago meanwhile.
    for (const client of group) if (!inMemory.includes(client)) fromLog(client);
    await serve(options, async (since) => options.openRecent(since), inMemory);
  });
  return (client) => {
    if (!isPosition(client.since)) leave(client, 'unknown position');
    else if (options.openRecent(client.since) !== null) fromMemory(client);
    else fromLog(client);
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

async function serve(options: CatchUpOptions, open: OpenHistory, group: readonly Returning[]): Promise<void> {
  const clients = new Set(group.filter((client) => !client.isGone()));
  if (clients.size === 0) return;
  try {
    const first = [...clients].map(({ since }) => since).reduce((a, b) => (isAfter(a, b) ? b : a));
    const history = await open(first);
    if (history !== null) await follow(options, clients, history);
    // A position that nobody knows is no reason to give the others up.
    else if (group.length > 1) for (const client of group) await serve(options, open, [client]);
    else for (const client of group) leave(client, 'history gone');
  } catch (error) {
    options.log.warn({ err: error }, 'clients could not be told what they missed: they have to come back');
    for (const client of clients) client.end();
  }
}

type History = NonNullable<Awaited<ReturnType<OpenHistory>>>;

async function follow(options: CatchUpOptions, clients: Set<Returning>, history: History): Promise<void> {
  const untilMs = performance.now() + LIMITS.historyAheadMs;
  for await (const { changes, upTo } of history) {
    for (const change of changes) {
      await joinBefore(options, clients, change.position);
      if (clients.size === 0) return;
      await tellChange(options, clients, change);
    }
    // Those who listen live must not wait for those who come back.
    await yieldTurn();
    await dropThose(clients);
    for (const client of clients) if (isAfter(upTo, client.since)) client.passed(upTo);
    if (!isAfter(options.told(), upTo)) joinThose(clients, options.told());
    if (performance.now() > untilMs) dropAhead(options, clients);
    if (clients.size === 0) return;
  }
}

/** Who is gone, or does not take what it is told, is told no more; nobody waits for another one. */
async function dropThose(clients: Set<Returning>): Promise<void> {
  const checked = [...clients].map(async (client) => ({ client, stays: !client.isGone() && (await client.drained()) }));
  for (const { client, stays } of await Promise.all(checked)) if (!stays) clients.delete(client);
}

/**
 * Before a change that the hub has not told yet: who has been told all that came before joins, in time to hear it from
 * the hub. Who is ahead of the hub waits for it, since they would hear the change twice.
 */
async function joinBefore(options: CatchUpOptions, clients: Set<Returning>, position: string): Promise<void> {
  const untilMs = performance.now() + LIMITS.historyAheadMs;
  while (isAfter(position, options.told())) {
    joinThose(clients, options.told());
    if (performance.now() > untilMs) dropAhead(options, clients);
    if (clients.size === 0) return;
    await wait(LIMITS.historyWaitMs);
  }
}

/** Those come from a position that no instance can have told: of another database, or none. */
function dropAhead({ told }: CatchUpOptions, clients: Set<Returning>): void {
  for (const client of clients) {
    if (!isAfter(client.since, told())) continue;
    clients.delete(client);
    leave(client, 'unknown position');
  }
}

/** Who came from a position that the hub has not told yet is not joined: the hub would tell what it knows. */
function joinThose(clients: Set<Returning>, told: string): void {
  for (const client of clients) {
    if (isAfter(client.since, told)) continue;
    clients.delete(client);
    if (!client.isGone()) client.join();
  }
}

async function tellChange(options: CatchUpOptions, clients: Set<Returning>, change: Change): Promise<void> {
  for (const client of clients) if (client.isGone()) clients.delete(client);
  if (change.objectId === null) return;
  const readers = await options.findReaders(change.objectId);
  if (readers === null) return;
  for (const event of toEvents(change, readers)) {
    const today = { ...event, readers };
    const rooms = roomsFor(today);
    for (const client of clients) {
      if (isAfter(change.position, client.since) && !client.isGone() && client.isIn(rooms)) client.tell(today);
    }
  }
}
