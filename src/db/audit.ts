/** The log of security events: who let themselves in, was refused, took or gave rights; a line in the log, and an entity. */
import { ObjectId } from 'mongodb';
import { ROOT_GROUP_ID } from '../model/builtin.js';
import { LIMITS } from '../model/limits.js';
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

export function createAudit(options: AuditOptions): Audit {
  const pending = new Map<string, Pending>();
  let timer: NodeJS.Timeout | undefined;
  let storing = Promise.resolve();
  const flush = (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    const taken = [...pending.values()];
    pending.clear();
    storing = storing.then(() => storeAll(options, taken));
    return storing;
  };
  return {
    record(entry) {
      // Somebody may have typed a password for a name: what nobody is called is told nowhere.
      options.log.info({ ...entry, login: entry.userId === null ? null : entry.login }, entry.action);
      const { requestId: _, ...alike } = entry;
      const key = JSON.stringify(alike);
      const same = pending.get(key);
      if (same !== undefined) same.count++;
      else if (pending.size < LIMITS.auditPending) pending.set(key, { entry, timeMs: options.now(), count: 1 });
      timer ??= setTimeout(() => void flush(), LIMITS.auditDelayMs);
    },
    stop: flush,
  };
}

/** What can be stored is stored, whatever else happened in the same moment. */
async function storeAll(options: AuditOptions, taken: readonly Pending[]): Promise<void> {
  if (taken.length === 0) return;
  try {
    await store(options, taken);
  } catch (error) {
    if (taken.length > 1 && !isAway(error)) for (const one of taken) await storeAll(options, [one]);
    else options.log.error({ err: error, events: taken.length }, NOT_STORED);
  }
}

const NOT_STORED = 'security events could not be stored; they are in the log';

async function store({ database, log }: AuditOptions, taken: readonly Pending[]): Promise<void> {
  const users = [...new Set(taken.flatMap(({ entry }) => entry.userId ?? []))];
  const logins = [...new Set(taken.flatMap(({ entry }) => (entry.userId === null ? (entry.login ?? []) : [])))];
  const branches = await findBranches(database, users, logins);
  const writes = taken.flatMap((one): Write[] => {
    const { userId, login } = one.entry;
    const branch = branches.get(userId ?? login ?? '');
    const isNobody = userId === null && branch === undefined;
    const shown = isNobody ? { ...one, entry: { ...one.entry, login: null } } : one;
    const bson = toBson(toAuditDocument(shown, branch), DOCUMENT_BYTES);
    return bson === null ? [] : [{ bson }];
  });
  const outcomes = await insertTogether(database.db, 'audit', writes);
  const refused = outcomes.flatMap((outcome) => ('refused' in outcome ? [outcome.refused] : []));
  if (refused.length > 0) log.error({ err: refused[0], events: refused.length }, NOT_STORED);
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

function toAuditDocument({ entry, timeMs, count }: Pending, branch = [new ObjectId(ROOT_GROUP_ID)]) {
  const { userId, entityId, ...told } = entry;
  const user = userId === null ? null : new ObjectId(userId);
  return {
    _id: new ObjectId(),
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
