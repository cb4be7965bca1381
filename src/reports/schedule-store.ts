/** Schedules as the service runs them: what is due, and what became of it. */
import { type ClientSession, type Document, ObjectId } from 'mongodb';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import type { Turn, Waiting } from '../core/scheduled-report.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { toPlain } from '../platform/mongo/schema/mapping.js';

export interface DueSchedule {
  readonly id: string;
  readonly ownerId: string;
  /** What the token permitted with which it was set up; null for everything that its owner may. */
  readonly scopes: readonly string[] | null;
  readonly waiting: Waiting;
  readonly fields: JsonObject;
}

/** What became of a run, as the schedule shows it. */
export interface LastRun {
  readonly time: number;
  /** When it was due. */
  readonly due: number;
  readonly late: boolean;
  readonly status: 'sending' | 'failed';
  /** How many mails it sends. */
  readonly mails: number;
  readonly error: string | null;
}

const schedulesIn = ({ db }: Database) => db.collection('schedules');

/** The group below the root; a schedule of the root group is its owner's. */
const TENANT: Document = { $ifNull: [{ $arrayElemAt: ['$branch', 1] }, '$owner'] };

export interface DueOfTenant {
  readonly tenant: string;
  readonly scheduleId: string;
}

/** What each tenant has waited for longest, without those `except`. Throws 503. */
export async function findDue(database: Database, nowMs: number, except: readonly string[]): Promise<DueOfTenant[]> {
  const found = [
    ...(await findWaiting(database, 'asked', nowMs, except)),
    ...(await findWaiting(database, 'due', nowMs, except)),
  ];
  // The older schedule first, where several have waited as long.
  const place = ({ since, schedule }: Document): string => `${String(since).padStart(16, '0')}${schedule}`;
  found.sort((one, other) => (place(one) < place(other) ? -1 : 1));
  const firsts = new Map<string, DueOfTenant>();
  for (const { _id, schedule } of found) {
    const tenant = String(_id);
    if (!firsts.has(tenant)) firsts.set(tenant, { tenant, scheduleId: String(schedule) });
  }
  return [...firsts.values()];
}

/** What each tenant has waited for longest, of what was asked for or of what is due by its times. Throws 503. */
async function findWaiting(
  database: Database,
  field: 'asked' | 'due',
  nowMs: number,
  except: readonly string[],
): Promise<Document[]> {
  const waiting = { [field]: { $gt: 0, $lte: nowMs }, _id: { $nin: except.map((id) => new ObjectId(id)) } };
  const first = { $group: { _id: TENANT, since: { $first: `$${field}` }, schedule: { $first: '$_id' } } };
  const pipeline = [{ $match: waiting }, { $sort: { [field]: 1, _id: 1 } }, first];
  const options = { maxTimeMS: LIMITS.databaseOperationMs };
  const read = () => schedulesIn(database).aggregate(pipeline, options).toArray();
  return mapDriverErrors(read, LIMITS.databaseOperationMs);
}

/** Null where it does not wait any more. Throws 503. */
export async function loadDue(database: Database, id: string, nowMs: number): Promise<DueSchedule | null> {
  const found = await mapDriverErrors(() => schedulesIn(database).findOne({ _id: new ObjectId(id) }));
  if (found === null) return null;
  const { owner, _scopes, asked, due, lastDue, ...fields } = toPlain(found) as JsonObject;
  const past = (ms: unknown): number | null => (typeof ms === 'number' && ms <= nowMs ? ms : null);
  const waiting = { askedMs: past(asked), dueMs: past(due), lastDueMs: (lastDue ?? null) as number | null };
  if (waiting.askedMs === null && waiting.dueMs === null) return null;
  return { id, ownerId: String(owner), scopes: (_scopes ?? null) as string[] | null, waiting, fields };
}

/**
 * Stores what became of a run, if there was one, and when the next one is. Who changed its times meanwhile has said that already, and
 * who asked for another one gets it.
 */
export async function storeRun(
  database: Database,
  { id, waiting: { askedMs, dueMs } }: DueSchedule,
  { nextMs, lastDueMs }: Turn,
  { lastRun, session }: { lastRun: LastRun | null; session: ClientSession },
): Promise<void> {
  const set: Document = { lastDue: lastDueMs };
  if (dueMs !== null) set.due = { $cond: [{ $eq: ['$due', dueMs] }, nextMs, '$due'] };
  if (askedMs !== null) set.asked = { $cond: [{ $eq: ['$asked', askedMs] }, null, '$asked'] };
  if (lastRun !== null) set.lastRun = { $literal: lastRun };
  await schedulesIn(database).updateOne({ _id: new ObjectId(id) }, [{ $set: set }], { session });
}

/** Has it sent now, beside the times at which it is due: who changes these does not take it back. Throws 503. */
export async function askForRun(database: Database, id: string, nowMs: number): Promise<void> {
  const update = { $set: { asked: nowMs } };
  await mapDriverErrors(() => schedulesIn(database).updateOne({ _id: new ObjectId(id) }, update));
}

/** How many there are of the tenant, or of the root group itself. Throws 503. */
export async function countSchedules(database: Database, [root, tenant]: readonly string[]): Promise<number> {
  const within = tenant === undefined ? { group: new ObjectId(root) } : { branch: new ObjectId(tenant) };
  const limit = LIMITS.schedulesPerTenant;
  return mapDriverErrors(() => schedulesIn(database).countDocuments(within, { limit }));
}
