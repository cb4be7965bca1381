/**
 * Brings clients that come back with a position up to the present: what came after it is read again from the database's
 * log and told in order, until it is what the hub has told the others; then they hear the hub. No seam: whatever is not
 * told here before they join is told by the hub after.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { Change, OpenHistory } from '../model/change.js';
import { LIMITS } from '../model/limits.js';
import { isAfter, isPosition } from '../model/position.js';
import { guardianOf, type LiveEvent, toEvents } from './events.js';

/** A client that was away. */
export interface Returning {
  readonly since: string;
  isGone(): boolean;
  /** Whether it may hear the event and wants to, by what holds now. */
  wants(event: LiveEvent): boolean;
  tell(event: LiveEvent): void;
  /** Resolves when it has taken what it was told; false when it does not. */
  drained(): Promise<boolean>;
  /** From now on it hears the hub. Acts at once. */
  join(): void;
  /** Lets it come back later, with its position. */
  end(): void;
  /** What it missed cannot be told. */
  gap(reason: GapReason): void;
}

export type GapReason = 'unknown position' | 'history gone';

export interface CatchUpOptions {
  readonly openHistory: OpenHistory;
  /** The position up to which the hub has told everything. */
  readonly told: () => string;
  /** Those who may see an object now; null when it is gone. */
  readonly findReaders: (objectId: string) => Promise<readonly string[] | null> | readonly string[] | null;
  readonly log: { warn(details: object, message: string): void };
}

/** Takes a client in. Those who come while others are being served wait, and then share one reading of the log. */
export function createCatchUp(options: CatchUpOptions): (client: Returning) => void {
  let waiting: Returning[] = [];
  let reading = 0;
  const readNext = async (): Promise<void> => {
    reading++;
    while (waiting.length > 0) {
      const group = waiting;
      waiting = [];
      await serve(options, group);
    }
    reading--;
  };
  return (client) => {
    if (!isPosition(client.since)) {
      leave(client, 'unknown position');
      return;
    }
    waiting.push(client);
    if (reading < LIMITS.historiesAtOnce) void readNext();
  };
}

function leave(client: Returning, reason: GapReason): void {
  if (client.isGone()) return;
  client.gap(reason);
  client.join();
}

async function serve(options: CatchUpOptions, group: readonly Returning[]): Promise<void> {
  const clients = new Set(group);
  try {
    const first = group.map(({ since }) => since).reduce((a, b) => (isAfter(a, b) ? b : a));
    const history = await options.openHistory(first);
    if (history !== null) await follow(options, clients, history);
    // A position that nobody knows is no reason to give the others up.
    else if (group.length > 1) for (const client of group) await serve(options, [client]);
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
    for (const client of clients) if (client.isGone() || !(await client.drained())) clients.delete(client);
    if (!isAfter(options.told(), upTo)) joinThose(clients, options.told());
    if (performance.now() > untilMs) dropAhead(options, clients);
    if (clients.size === 0) return;
  }
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
  const readers = await options.findReaders(guardianOf(change) ?? change.id);
  if (readers === null) return;
  for (const event of toEvents(change, readers)) {
    const today = { ...event, readers };
    for (const client of clients) {
      if (isAfter(change.position, client.since) && !client.isGone() && client.wants(today)) client.tell(today);
    }
  }
}
