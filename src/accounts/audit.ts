/** Records security events (logins, refusals, changes of permissions), each as a log line and as an entity. */

import { hash } from 'node:crypto';
import { ObjectId } from 'mongodb';
import { ROOT_GROUP_ID } from '../core/builtin.js';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { networkOf } from '../core/network.js';
import { clock, type Timer } from '../platform/clock.js';
import { DOCUMENT_BYTES, toBson } from '../platform/mongo/bson/writer.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { isDuplicate, isTransientError, mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { insertTogether, type Write } from '../platform/mongo/driver/retryable-write.js';
import { type AuditBudget, createAuditBudget, ENTITY_CHANGED } from './audit-budget.js';

/** A security event. Equal events within a moment are stored once, with their count. */
export interface AuditEntry {
  readonly action: string;
  /** The user, if known; else the attempted login, which is stored only if a user has it. */
  readonly userId: string | null;
  readonly login: string | null;
  readonly address: string;
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  /** The affected entity, if any. */
  readonly entityId: string | null;
  /** The names of the changed fields. */
  readonly fields: readonly string[] | null;
  /** Their values before and after the change, where they are known; none is secret. */
  readonly before?: JsonObject;
  readonly after?: JsonObject;
}

/** Of an event that no request has caused. */
export const NO_REQUEST = { login: null, address: '', requestId: '', method: '', path: '' } as const;

/** The `_id` of an event that every instance may see, and that is stored once. */
export const auditIdOf = (...parts: readonly (string | number)[]): ObjectId =>
  new ObjectId(hash('sha256', JSON.stringify(parts)).slice(0, 24));

export interface Audit {
  record(entry: AuditEntry): void;
  /** Stores an event at once. Stores it only once when called again with the same `_id`. Throws 503. */
  recordOnce(_id: ObjectId, entry: AuditEntry): Promise<void>;
  /** Stores all pending events. */
  flush(): Promise<void>;
  /** The same, at the end. */
  stop(): Promise<void>;
}

interface Pending {
  readonly entry: AuditEntry;
  readonly timeMs: number;
  count: number;
}

export interface AuditOptions {
  readonly database: Database;
  readonly log: { info(details: object, message: string): void; error(details: object, message: string): void };
  readonly now: () => number;
}

type StoreDeps = AuditOptions & { readonly budget: AuditBudget };

export function createAudit(options: AuditOptions): Audit {
  const pending = createPending(options.now);
  const deps = { ...options, budget: createAuditBudget(options.now) };
  let timer: Timer | undefined;
  let storing = Promise.resolve();
  const flush = (): Promise<void> => {
    clock.clearTimer(timer);
    timer = undefined;
    const taken = pending.take();
    storing = storing.then(() => storeAll(deps, taken));
    return storing;
  };
  const logged = (given: AuditEntry): AuditEntry => {
    const entry = shorten(given);
    // A user may have typed a password as the login, so unknown logins are never logged.
    // Former and new values are personal data: only the store, which its readers need a right for, has them.
    const { before: _before, after: _after, ...shown } = entry;
    options.log.info({ ...shown, login: entry.userId === null ? null : entry.login }, entry.action);
    return entry;
  };
  return {
    record(given) {
      pending.add(logged(given));
      timer ??= clock.setTimeout(() => void flush(), LIMITS.auditDelayMs);
    },
    recordOnce: (_id, given) => storeOnce(options, _id, logged(given)),
    flush,
    stop: flush,
  };
}

const shorten = (entry: AuditEntry): AuditEntry => ({
  ...entry,
  login: entry.login && cut(entry.login, LIMITS.nameCharacters),
  path: cut(entry.path, LIMITS.auditPathCharacters),
  address: cut(entry.address, LIMITS.auditPathCharacters),
});

// Does not split a surrogate pair.
const cut = (text: string, max: number): string => text.slice(0, max).replace(/[\ud800-\udbff]$/, '');

/** Collects pending events. Those of strangers, and changes of entities, fill at most half of it. */
function createPending(now: () => number): { add(entry: AuditEntry): void; take(): Pending[] } {
  const pending = new Map<string, Pending>();
  /** By networks of strangers, and by users for their changes. */
  const counts = new Map<string, number>();
  return {
    add(given) {
      const actor = limitedActorOf(given);
      const count = actor === null ? 0 : (counts.get(actor) ?? 0);
      const entry = inFlood(given, count);
      const key = keyOf(entry);
      const same = pending.get(key);
      if (same !== undefined) {
        same.count++;
        return;
      }
      if (pending.size >= (actor === null ? LIMITS.auditPending : LIMITS.auditPending / 2)) return;
      pending.set(key, { entry, timeMs: now(), count: 1 });
      if (actor !== null) counts.set(actor, count + 1);
    },
    take() {
      const taken = [...pending.values()];
      pending.clear();
      counts.clear();
      return taken;
    },
  };
}

/** Whose events of this kind are limited; null for others. */
function limitedActorOf({ action, userId, address }: AuditEntry): string | null {
  if (userId === null) return networkOf(address);
  return action === ENTITY_CHANGED ? userId : null;
}

/** What is kept of an event after so many others of its actor. */
function inFlood(entry: AuditEntry, count: number): AuditEntry {
  if (entry.action === ENTITY_CHANGED && count >= LIMITS.auditChangesAtOnce) return asOneOfMany(entry);
  // The logins of a flood are useless.
  return entry.userId === null && count >= LIMITS.auditRefusals ? { ...entry, login: null } : entry;
}

/** What an event that is counted with others has in common with them. */
function asOneOfMany({ before: _before, after: _after, ...entry }: AuditEntry): AuditEntry {
  const login = entry.userId === null ? null : entry.login;
  return { ...entry, login, path: '*', entityId: null, fields: null };
}

const keyOf = ({ requestId: _, ...alike }: AuditEntry): string => JSON.stringify(alike);

/** Stores all valid events, even if another one of the batch fails. */
async function storeAll(options: StoreDeps, taken: readonly Pending[]): Promise<void> {
  if (taken.length === 0) return;
  try {
    await store(options, taken);
  } catch (error) {
    if (taken.length > 1 && !isTransientError(error)) for (const one of taken) await storeAll(options, [one]);
    else options.log.error({ err: error, events: taken.length }, NOT_STORED);
  }
}

const NOT_STORED = 'failed to store security events; they are in the log';

async function store({ database, log, budget }: StoreDeps, taken: readonly Pending[]): Promise<void> {
  const users = [...new Set(taken.flatMap(({ entry }) => entry.userId ?? []))];
  const logins = [...new Set(taken.flatMap(({ entry }) => (entry.userId === null ? (entry.login ?? []) : [])))];
  const branches = await findBranches(database, users, logins);
  const branchOf = ({ userId, login }: AuditEntry): ObjectId[] | undefined => branches.get(userId ?? login ?? '');
  const known = taken.map((one) => {
    const isUnknown = one.entry.userId === null && branchOf(one.entry) === undefined;
    return isUnknown ? { ...one, entry: { ...one.entry, login: null } } : one;
  });
  const { events, made, more } = gather(joinAlike(known), budget);
  const writes = events.flatMap((event): Write[] => {
    const bson = toBson(toAuditDocument(event, branchOf(event.entry)), DOCUMENT_BYTES);
    return bson === null ? [] : [{ bson }];
  });
  const outcomes = await insertTogether(database.db, 'audit', writes);
  const refused = outcomes.flatMap((outcome) => ('error' in outcome ? [outcome.error] : []));
  if (refused.length > 0) log.error({ err: refused[0], events: refused.length }, NOT_STORED);
  for (const [group, { id }] of made) budget.set(group, id);
  const updates = [...more.values()].map(({ id, count }) => ({
    updateOne: { filter: { _id: id }, update: { $inc: { count } } },
  }));
  if (updates.length > 0) await database.db.collection('audit').bulkWrite(updates, { ordered: false });
}

async function storeOnce({ database, now }: AuditOptions, id: ObjectId, entry: AuditEntry): Promise<void> {
  const { userId } = entry;
  const branches = userId === null ? null : await mapDriverErrors(() => findBranches(database, [userId], []));
  const event = { id, entry, timeMs: now(), count: 1 };
  const bson = toBson(toAuditDocument(event, branches?.get(userId ?? '')), DOCUMENT_BYTES);
  if (bson === null) return;
  const [outcome] = await mapDriverErrors(() => insertTogether(database.db, 'audit', [{ bson }]));
  if (outcome !== undefined && 'error' in outcome && !isDuplicate(outcome.error)) throw outcome.error;
}

/** Joins events that differ only in an unknown login. */
function joinAlike(events: readonly Pending[]): Pending[] {
  const joined = new Map<string, Pending>();
  for (const event of events) {
    const same = joined.get(keyOf(event.entry));
    if (same === undefined) joined.set(keyOf(event.entry), { ...event });
    else same.count += event.count;
  }
  return [...joined.values()];
}

/** Separates new events from increments of the count of stored ones. */
function gather(all: readonly Pending[], budget: AuditBudget) {
  const events: (Pending & { id?: ObjectId })[] = [];
  const more = new Map<string, { readonly id: ObjectId; count: number }>();
  const made = new Map<string, Pending & { id: ObjectId }>();
  for (const one of all) {
    const group = budget.groupOf(one.entry);
    const [begun, standing] = group === null ? [] : [made.get(group), budget.find(group)];
    if (group === null) events.push(one);
    else if (begun !== undefined) begun.count += one.count;
    else if (standing != null) {
      more.set(group, { id: standing, count: (more.get(group)?.count ?? 0) + one.count });
    } else {
      const id = new ObjectId();
      const together = { ...one, id, entry: asOneOfMany(one.entry) };
      made.set(group, together);
      events.push(together);
    }
  }
  return { events, made, more };
}

/** The branch of each user's group, by `_id` and by login: its administrators see the events of its users and logins. */
async function findBranches(
  database: Database,
  users: readonly string[],
  logins: readonly string[],
): Promise<Map<string, ObjectId[]>> {
  const ids = users.map((id) => new ObjectId(id));
  const found = await database.db
    .collection('users')
    .find({ $or: [{ _id: { $in: ids } }, { login: { $in: [...logins] } }] }, { projection: { branch: 1, login: 1 } })
    .toArray();
  return new Map(
    found.flatMap(
      ({ _id, login, branch }) =>
        [
          [String(_id), branch],
          [login, branch],
        ] as const,
    ),
  );
}

function toAuditDocument(
  { id = new ObjectId(), entry, timeMs, count }: Pending & { id?: ObjectId },
  branch = [new ObjectId(ROOT_GROUP_ID)],
) {
  const { userId, entityId, ...shown } = entry;
  const user = userId === null ? null : new ObjectId(userId);
  return {
    _id: id,
    ...shown,
    user,
    entity: entityId,
    count,
    owner: null,
    group: branch.at(-1),
    branch,
    access: [],
    time: timeMs,
    _expires: new Date(timeMs + LIMITS.auditKeptMs),
  };
}
