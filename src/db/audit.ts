/** The log of security events: who let themselves in, was refused, took or gave rights; a line in the log, and an entity. */
import { ObjectId } from 'mongodb';
import { ROOT_GROUP_ID } from '../model/builtin.js';
import { LIMITS } from '../model/limits.js';
import { networkOf } from '../model/network.js';
import { type AuditBudget, createAuditBudget } from './audit-budget.js';
import { DOCUMENT_BYTES, toBson } from './bson-writer.js';
import type { Database } from './connect.js';
import { isAway } from './documents.js';
import { insertTogether, type Write } from './write-command.js';

/** One event. What is alike within a moment is told once, with its count. */
export interface AuditEntry {
  readonly action: string;
  /** Who did it, where that is known; the login that was tried, where it is not (kept when somebody is called so). */
  readonly userId: string | null;
  readonly login: string | null;
  readonly address: string;
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  /** The entity it was done to, where there is one. */
  readonly entityId: string | null;
  /** The names of the fields that were changed. */
  readonly fields: readonly string[] | null;
}

export interface Audit {
  record(entry: AuditEntry): void;
  /** Stores what is not stored yet. */
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

type StoreParts = AuditOptions & { readonly budget: AuditBudget };

export function createAudit(options: AuditOptions): Audit {
  const pending = createPending(options.now);
  const parts = { ...options, budget: createAuditBudget(options.now) };
  let timer: NodeJS.Timeout | undefined;
  let storing = Promise.resolve();
  const flush = (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    const taken = pending.take();
    storing = storing.then(() => storeAll(parts, taken));
    return storing;
  };
  return {
    record(given) {
      const path = cut(given.path, LIMITS.auditPathCharacters);
      const address = cut(given.address, LIMITS.auditPathCharacters);
      const entry = { ...given, login: given.login && cut(given.login, LIMITS.nameCharacters), path, address };
      // Somebody may have typed a password for a name: what nobody is called is told nowhere.
      options.log.info({ ...entry, login: entry.userId === null ? null : entry.login }, entry.action);
      pending.add(entry);
      timer ??= setTimeout(() => void flush(), LIMITS.auditDelayMs);
    },
    stop: flush,
  };
}

// No half of a character is left.
const cut = (text: string, most: number): string => text.slice(0, most).replace(/[\ud800-\udbff]$/, '');

/** What is not stored yet. Of those who are not known, however many they are, it leaves room for the others. */
function createPending(now: () => number): { add(entry: AuditEntry): void; take(): Pending[] } {
  const pending = new Map<string, Pending>();
  const perNetwork = new Map<string, number>();
  return {
    add(given) {
      const network = given.userId === null ? networkOf(given.address) : null;
      const count = network === null ? 0 : (perNetwork.get(network) ?? 0);
      // The names of a flood are of no use.
      const entry = count < LIMITS.auditRefusals ? given : { ...given, login: null };
      const key = keyOf(entry);
      const same = pending.get(key);
      if (same !== undefined) {
        same.count++;
        return;
      }
      if (pending.size >= (network === null ? LIMITS.auditPending : LIMITS.auditPending / 2)) return;
      pending.set(key, { entry, timeMs: now(), count: 1 });
      if (network !== null) perNetwork.set(network, count + 1);
    },
    take() {
      const taken = [...pending.values()];
      pending.clear();
      perNetwork.clear();
      return taken;
    },
  };
}

const keyOf = ({ requestId: _, ...alike }: AuditEntry): string => JSON.stringify(alike);

/** What can be stored is stored, whatever else happened in the same moment. */
async function storeAll(options: StoreParts, taken: readonly Pending[]): Promise<void> {
  if (taken.length === 0) return;
  try {
    await store(options, taken);
  } catch (error) {
    if (taken.length > 1 && !isAway(error)) for (const one of taken) await storeAll(options, [one]);
    else options.log.error({ err: error, events: taken.length }, NOT_STORED);
  }
}

const NOT_STORED = 'security events could not be stored; they are in the log';

async function store({ database, log, budget }: StoreParts, taken: readonly Pending[]): Promise<void> {
  const users = [...new Set(taken.flatMap(({ entry }) => entry.userId ?? []))];
  const logins = [...new Set(taken.flatMap(({ entry }) => (entry.userId === null ? (entry.login ?? []) : [])))];
  const branches = await findBranches(database, users, logins);
  const branchOf = ({ userId, login }: AuditEntry): ObjectId[] | undefined => branches.get(userId ?? login ?? '');
  const known = taken.map((one) => {
    const isNobody = one.entry.userId === null && branchOf(one.entry) === undefined;
    return isNobody ? { ...one, entry: { ...one.entry, login: null } } : one;
  });
  const { events, made, more } = gather(joinAlike(known), budget);
  const writes = events.flatMap((event): Write[] => {
    const bson = toBson(toAuditDocument(event, branchOf(event.entry)), DOCUMENT_BYTES);
    return bson === null ? [] : [{ bson }];
  });
  const outcomes = await insertTogether(database.db, 'audit', writes);
  const refused = outcomes.flatMap((outcome) => ('refused' in outcome ? [outcome.refused] : []));
  if (refused.length > 0) log.error({ err: refused[0], events: refused.length }, NOT_STORED);
  for (const [group, { id }] of made) budget.set(group, id);
  const updates = [...more.values()].map(({ id, count }) => ({
    updateOne: { filter: { _id: id }, update: { $inc: { count } } },
  }));
  if (updates.length > 0) await database.db.collection('audit').bulkWrite(updates, { ordered: false });
}

/** Those of which only a name differed that nobody has are one event. */
function joinAlike(events: readonly Pending[]): Pending[] {
  const joined = new Map<string, Pending>();
  for (const event of events) {
    const same = joined.get(keyOf(event.entry));
    if (same === undefined) joined.set(keyOf(event.entry), { ...event });
    else same.count += event.count;
  }
  return [...joined.values()];
}

/** What is stored as an event, and what adds to the count of one that is stored already. */
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
      const login = one.entry.userId === null ? null : one.entry.login;
      const together = { ...one, id, entry: { ...one.entry, login, path: '*', entityId: null, fields: null } };
      made.set(group, together);
      events.push(together);
    }
  }
  return { events, made, more };
}

/** The branch of each user's group, by `_id` and by login: who administers it sees what the user did, or somebody tried. */
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
  const { userId, entityId, ...told } = entry;
  const user = userId === null ? null : new ObjectId(userId);
  return {
    _id: id,
    ...told,
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
