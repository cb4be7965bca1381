/** Reads what happened to one object in an interval: its alarms, commands and notes, each through an index, as far as the caller sees them. */
import { type Document, type Filter, ObjectId } from 'mongodb';
import type { Scope } from '../core/access.js';
import { type CommandStatus, OPEN_STATUSES } from '../core/command.js';
import { LIMITS } from '../core/limits.js';
import { builtInStore } from '../core/stores.js';
import { listNotes } from '../notes/note-store.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { collectionOf } from '../platform/mongo/schema/collections.js';
import { scopeFilter } from '../platform/mongo/schema/visibility.js';

/** What is looked for. */
export interface Wanted {
  readonly scope: Scope;
  readonly objectId: string;
  readonly fromMs: number;
  /** Included. */
  readonly toMs: number;
}

/** One thing that happened. Times are ms since the epoch. */
export interface Happening {
  readonly kind: 'alarm' | 'command' | 'note' | 'offline';
  readonly fromMs: number;
  /** Null where it has no end, or none yet. */
  readonly toMs: number | null;
  readonly text: string;
  readonly status?: string;
  readonly severity?: string;
  readonly acknowledgedMs?: number;
  /** The `_id` of who sent, wrote or acknowledged it. */
  readonly userId?: string;
  /** The login, where the entity itself has it. */
  readonly login?: string;
}

/** One more than an object may have, so that too many are noticed. */
const most = (): number => LIMITS.reportObjectRows + 1;

interface Reading {
  readonly store: 'alarms' | 'commands';
  readonly condition: Filter<Document>;
  readonly index: Record<string, 1>;
  readonly fields: Record<string, 1>;
}

async function find(database: Database, { scope, objectId }: Wanted, reading: Reading): Promise<Document[]> {
  const store = builtInStore(reading.store);
  const filter = { $and: [{ object: new ObjectId(objectId) }, reading.condition, scopeFilter(store, scope)] };
  const options = {
    projection: reading.fields,
    // Otherwise the database may read everything that the caller sees.
    hint: reading.index,
    limit: most(),
    maxTimeMS: LIMITS.databaseOperationMs,
  };
  const read = () => collectionOf(database, store).find(filter, options).toArray();
  return mapDriverErrors(read, LIMITS.databaseOperationMs);
}

const ALARM_FIELDS = { name: 1, status: 1, severity: 1, raised: 1, cleared: 1, acknowledged: 1 } as const;

/** The alarms that were raised at any moment of the interval, as they are now. Throws 503. */
export async function findAlarms(database: Database, wanted: Wanted): Promise<Happening[]> {
  const { fromMs, toMs } = wanted;
  const before = { raised: { $lt: fromMs } };
  const read = (condition: Filter<Document>, time: string) =>
    find(database, wanted, {
      store: 'alarms',
      condition,
      index: { object: 1, [time]: 1, _id: 1 },
      fields: ALARM_FIELDS,
    });
  const found = await Promise.all([
    read({ raised: { $gte: fromMs, $lte: toMs } }, 'raised'),
    read({ cleared: { $gte: fromMs }, ...before }, 'cleared'),
    read({ status: 'raised', ...before }, 'status'),
  ]);
  // One may be cleared between two of the queries.
  const byId = new Map(found.flat().map((alarm) => [String(alarm._id), alarm]));
  return [...byId.values()].map(toAlarm);
}

function toAlarm({ name, status, severity, raised, cleared, acknowledged }: Document): Happening {
  return {
    kind: 'alarm',
    fromMs: raised,
    toMs: cleared ?? null,
    text: String(name ?? ''),
    status,
    severity,
    acknowledgedMs: acknowledged?.time,
    userId: acknowledged?.user === undefined ? undefined : String(acknowledged.user),
  };
}

/** The commands that were sent in the interval, as they are now. Throws 503. */
export async function findCommands(database: Database, wanted: Wanted): Promise<Happening[]> {
  const found = await find(database, wanted, {
    store: 'commands',
    condition: { time: { $gte: wanted.fromMs, $lte: wanted.toMs } },
    index: { object: 1, time: 1, _id: 1 },
    fields: { command: 1, status: 1, time: 1, times: 1, owner: 1, _rule: 1 },
  });
  return found.map(({ command, status, time, times, owner, _rule }) => ({
    kind: 'command',
    fromMs: time,
    toMs: OPEN_STATUSES.includes(status as CommandStatus) ? null : (times?.[status] ?? null),
    text: String(command),
    status,
    // Nobody sent those of rules.
    userId: _rule === undefined ? String(owner) : undefined,
  }));
}

/** The notes about any time of the interval. Throws 503. */
export async function findNotes(database: Database, { scope, objectId, fromMs, toMs }: Wanted): Promise<Happening[]> {
  const found = await listNotes(database, scope, { objectId, fromMs, toMs });
  return found.map(({ time, to, text, author }) => ({ kind: 'note', fromMs: time, toMs: to, text, login: author }));
}

/** The logins of these users, by `_id`, as far as the scope sees the users. Throws 503. */
export async function findLogins(
  database: Database,
  scope: Scope,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (ids.length === 0) return new Map();
  const users = builtInStore('users');
  const filter = { $and: [{ _id: { $in: ids.map((id) => new ObjectId(id)) } }, scopeFilter(users, scope)] };
  const options = { projection: { login: 1 }, maxTimeMS: LIMITS.databaseOperationMs };
  const read = () => collectionOf(database, users).find(filter, options).toArray();
  const found = await mapDriverErrors(read, LIMITS.databaseOperationMs);
  return new Map(found.map(({ _id, login }) => [String(_id), String(login)]));
}
