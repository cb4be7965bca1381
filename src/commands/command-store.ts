/** Stores commands. Each transition is one atomic write, so that of concurrent attempts only one succeeds. */
import { BSON, type ClientSession, type Document, type Filter, ObjectId, type UpdateFilter } from 'mongodb';
import type { Scope } from '../core/access.js';
import {
  type Command,
  type CommandOutcome,
  type CommandStatus,
  hasOutcome,
  OPEN_STATUSES,
  statusesBefore,
} from '../core/command.js';
import { type Entity, isId } from '../core/entity.js';
import { conflict, notFound } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import type { Page, Selection } from '../core/list.js';
import { builtInStore } from '../core/stores.js';
import type { StoredPlace } from '../entities/place.js';
import { listEntities, summarizeEntities } from '../entities/read.js';
import type { JsonPage } from '../platform/mongo/bson/raw-cursor.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { collectionOf } from '../platform/mongo/schema/collections.js';
import { findStored } from '../platform/mongo/schema/lookup.js';
import { toEntity } from '../platform/mongo/schema/mapping.js';

export type StoredCommand = Entity & Command;

const COMMANDS = builtInStore('commands');
const OBJECTS = builtInStore('objects');
/** The stores whose entities are seen by those who see their object. */
const FOLLOWING = [COMMANDS, builtInStore('alarms'), builtInStore('notes')];
// Without the hint, the database may scan all commands that the object ever got.
export const WAITING_INDEX = { object: 1, status: 1, _id: 1 };
const SENT_INDEX = { object: 1, time: 1, _id: 1 };

/**
 * Creates an `_id` that is greater than all `_id`s from earlier milliseconds, of any instance. Devices execute commands in the
 * order of their `_id`s, and an ordinary ObjectId only contains seconds.
 */
export function newCommandId(nowMs: number): string {
  const bytes = Buffer.from(new ObjectId().id);
  bytes.writeUInt32BE(Math.floor(nowMs / 1_000), 0);
  // The millisecond replaces two of the five random bytes of the process.
  bytes.writeUInt16BE(nowMs % 1_000, 4);
  return bytes.toString('hex');
}

/**
 * Claims the object's oldest command that waits, or that another holder sent without a confirmation, and marks it `sent` by this
 * holder; null when there is none. Skips expired commands. `holder` names one connection of the device. After a 503 it may
 * have claimed a command without knowing, and must call `releaseClaim`.
 */
export async function claimCommand(
  database: Database,
  objectId: string,
  holder: string,
  nowMs: number,
): Promise<StoredCommand | null> {
  const filter = {
    object: new ObjectId(objectId),
    status: { $in: statusesBefore('sent') },
    _holder: { $ne: holder },
    _bySource: { $exists: false },
    expires: { $gt: nowMs },
  };
  return changeCommand(
    database,
    filter,
    { $set: { status: 'sent', 'times.sent': nowMs, _holder: holder } },
    { hint: WAITING_INDEX },
  );
}

/** The object's oldest command that waits; null when there is none. */
export async function findWaiting(database: Database, objectId: string, nowMs: number): Promise<StoredCommand | null> {
  const filter = { object: new ObjectId(objectId), status: 'queued', expires: { $gt: nowMs } };
  const options = { sort: { _id: 1 }, hint: WAITING_INDEX, maxTimeMS: LIMITS.databaseAnswerMs } as const;
  const found = await mapDriverErrors(() => collectionOf(database, COMMANDS).findOne(filter, options));
  return found === null ? null : (toEntity(COMMANDS, found) as StoredCommand);
}

/** Marks a command `delivered`; null unless it is `sent` by this holder. A null `holder` means any holder. */
export async function confirmDelivery(
  database: Database,
  commandId: string,
  holder: string | null,
  nowMs: number,
): Promise<StoredCommand | null> {
  const filter = {
    _id: new ObjectId(commandId),
    status: { $in: statusesBefore('delivered') },
    ...(holder !== null && { _holder: holder }),
  };
  return changeCommand(database, filter, {
    $set: { status: 'delivered', 'times.delivered': nowMs },
    $unset: { _holder: '' },
  });
}

/**
 * Stores the outcome that the device reports. Repeating the same outcome changes nothing and returns the command. Throws 404, also
 * for a command of another object, and 409 when the command already has another outcome.
 */
export async function finishCommand(
  database: Database,
  { objectId, commandId }: { objectId: string; commandId: string },
  outcome: CommandOutcome,
  nowMs: number,
): Promise<StoredCommand> {
  if (!isId(commandId)) throw notFound();
  const named = { _id: new ObjectId(commandId), object: new ObjectId(objectId) };
  const { status, result } = outcome;
  const finished = await changeCommand(database, { ...named, status: { $in: statusesBefore(status) } }, [
    {
      $set: {
        status,
        // A device that polls over HTTP, or answers before it confirms, skips these statuses.
        'times.sent': { $ifNull: ['$times.sent', nowMs] },
        'times.delivered': { $ifNull: ['$times.delivered', nowMs] },
        [`times.${status}`]: nowMs,
        ...(result !== undefined && { result: { $literal: result } }),
      },
    },
    { $unset: '_holder' },
  ]);
  if (finished !== null) return finished;
  // An update without a match also waits for the majority, so this read is durable.
  const present = await mapDriverErrors(() => collectionOf(database, COMMANDS).findOne(named));
  if (present === null) throw notFound();
  const command = toEntity(COMMANDS, present) as StoredCommand;
  if (hasOutcome(command, outcome)) return command;
  throw conflict(`the command is already ${command.status}`);
}

/**
 * Whether commands wait for the object. Calls in one iteration of the event loop share a query: thousands of devices connect at
 * once, and most of them have no waiting commands.
 */
export async function hasWaiting(database: Database, objectId: string, nowMs: number): Promise<boolean> {
  const waiting = await database.batch('commands that wait', [objectId], async (ids: string[]) => {
    const objects = { object: { $in: [...new Set(ids)].map((id) => new ObjectId(id)) } };
    const filter = { ...objects, status: { $in: statusesBefore('sent') }, expires: { $gt: nowMs } };
    const options = { hint: WAITING_INDEX, maxTimeMS: LIMITS.databaseAnswerMs };
    const found = await mapDriverErrors(() => collectionOf(database, COMMANDS).distinct('object', filter, options));
    return new Set(found.map(String));
  });
  return waiting.has(objectId);
}

/** Returns unconfirmed commands of closed connections to `queued`; returns their number. */
export async function releaseCommands(database: Database, holders: readonly string[]): Promise<number> {
  const filter = { _holder: { $in: [...holders] }, status: { $in: statusesBefore('queued') } };
  const { modifiedCount } = await mapDriverErrors(() =>
    collectionOf(database, COMMANDS).updateMany(filter, { $set: { status: 'queued' }, $unset: { _holder: '' } }),
  );
  return modifiedCount;
}

/** Returns the command to `queued` that this holder may have claimed at that instant without an answer. */
export async function releaseClaim(database: Database, holder: string, claimedMs: number): Promise<void> {
  const filter = { _holder: holder, 'times.sent': claimedMs, status: { $in: statusesBefore('queued') } };
  await changeCommand(database, filter, { $set: { status: 'queued' }, $unset: { _holder: '' } });
}

/** Marks overdue commands `expired`, whether or not they were delivered; returns their number. */
export async function expireCommands(database: Database, nowMs: number): Promise<number> {
  const commands = collectionOf(database, COMMANDS);
  const overdue: Filter<Document> = { status: { $in: [...OPEN_STATUSES] }, expires: { $lte: nowMs } };
  const options = { projection: { _id: 1 }, limit: LIMITS.expiryBatch };
  for (let expired = 0; ; ) {
    const some = await mapDriverErrors(() => commands.find(overdue, options).toArray());
    if (some.length === 0) return expired;
    const { modifiedCount } = await mapDriverErrors(() =>
      commands.updateMany(
        { _id: { $in: some.map(({ _id }) => _id) }, ...overdue },
        { $set: { status: 'expired', 'times.expired': nowMs }, $unset: { _holder: '' } },
      ),
    );
    expired += modifiedCount;
  }
}

/** Commands of one object, optionally only with these statuses. */
export interface CommandSelection {
  readonly objectId: string;
  readonly statuses: readonly CommandStatus[] | null;
  readonly nowMs: number;
}

/** A page of an object's visible commands, in the order of their execution. */
export function listCommands(
  database: Database,
  scope: Scope,
  selection: CommandSelection,
  page: Page,
): Promise<JsonPage> {
  // Few commands are open, and devices poll for them frequently.
  const isShort = selection.statuses?.every((status) => OPEN_STATUSES.includes(status)) === true;
  const conditions = conditionsOf(selection);
  // A device carries out what it reads, which an election must not undo.
  return listEntities(database, COMMANDS, scope, page, { conditions, isShort, isCommitted: true });
}

/** docs/reference/http-api.md, `meta`, for these commands. */
export function summarizeCommands(
  database: Database,
  scope: Scope,
  selection: CommandSelection,
  query: Selection,
): Promise<Buffer> {
  return summarizeEntities(database, COMMANDS, scope, query, conditionsOf(selection));
}

function conditionsOf({ objectId, statuses, nowMs }: CommandSelection): Filter<Document>[] {
  const conditions: Filter<Document>[] = [{ object: new ObjectId(objectId) }];
  if (statuses === null) return conditions;
  // Hides overdue commands until they are marked `expired`, so that no device executes them.
  const inTime = { $or: [{ status: { $nin: [...OPEN_STATUSES] } }, { expires: { $gt: nowMs } }] };
  return [...conditions, { status: { $in: [...statuses] } }, inTime];
}

/** Whether the object has reached the limit of waiting commands. */
export async function isQueueFull(database: Database, objectId: string): Promise<boolean> {
  const waiting = { object: new ObjectId(objectId), status: 'queued' };
  const limit = LIMITS.commandsWaiting;
  const count = await mapDriverErrors(() => collectionOf(database, COMMANDS).countDocuments(waiting, { limit }));
  return count >= limit;
}

/** How many commands wait for each of these objects that has any, by `_id`. Throws 503. */
export async function countWaiting(
  database: Database,
  objectIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const waiting = { object: { $in: objectIds.map((id) => new ObjectId(id)) }, status: 'queued' };
  const counted = await countGroups(database, waiting, '$object', WAITING_INDEX);
  return new Map(counted.map(({ _id, count }) => [String(_id), count]));
}

/** How many commands of a rule an object has got since then. */
export interface SentByRule {
  readonly ruleId: string;
  readonly objectId: string;
  readonly count: number;
}

/** How many commands these rules have sent to these objects since then, where they sent any. Throws 503. */
export async function countSentByRules(
  database: Database,
  { objectIds, ruleIds }: { readonly objectIds: readonly string[]; readonly ruleIds: readonly string[] },
  sinceMs: number,
): Promise<SentByRule[]> {
  const object = { $in: objectIds.map((id) => new ObjectId(id)) };
  const sent = { object, time: { $gte: sinceMs }, _rule: { $in: [...ruleIds] } };
  const counted = await countGroups(database, sent, { rule: '$_rule', object: '$object' }, SENT_INDEX);
  return counted.map(({ _id, count }) => ({ ruleId: _id.rule, objectId: String(_id.object), count }));
}

function countGroups(
  database: Database,
  $match: Document,
  _id: Document | string,
  hint: Document,
): Promise<Document[]> {
  const pipeline = [{ $match }, { $group: { _id, count: { $sum: 1 } } }];
  const options = { hint, maxTimeMS: LIMITS.databaseOperationMs };
  return mapDriverErrors(() => collectionOf(database, COMMANDS).aggregate(pipeline, options).toArray());
}

/**
 * Whether the sender of a command sees it only through the object's branch. A sender who leaves the branch, or with whom the
 * object is no longer shared, must not read the device's answer.
 */
export function isHiddenFromOwner(object: Pick<Entity, 'owner' | 'access'>, userId: string): boolean {
  return object.owner !== userId && !object.access.includes(userId);
}

/**
 * Copies the `access`, `group` and `branch` of an object to its commands, alarms and notes: to one that was just stored with them, or to all.
 * Reads the object again after each write, so that the last of concurrent writers leaves the current values.
 */
export async function followObject(
  database: Database,
  objectId: string,
  just: (Pick<Entity, 'access' | 'branch'> & { readonly entityId: string }) | null = null,
): Promise<void> {
  const named = { object: new ObjectId(objectId), ...(just && { _id: new ObjectId(just.entityId) }) };
  for (let known = just && seenBy(just); ; ) {
    const object = await findStored(database, OBJECTS, '_id', objectId);
    if (object === null) return;
    const { access, owner, group, branch } = BSON.deserialize(object);
    const present = seenBy({ access, branch });
    if (present === known) return;
    const stale = { ...named, $or: [{ access: { $ne: access } }, { branch: { $ne: branch } }] };
    const _withoutOwner = { $not: [{ $in: ['$owner', [...access, owner]] }] };
    for (const store of FOLLOWING) {
      await mapDriverErrors(() =>
        collectionOf(database, store).updateMany(stale, [{ $set: { access, group, branch, _withoutOwner } }]),
      );
    }
    known = present;
  }
}

const seenBy = ({ access, branch }: { readonly access: readonly unknown[]; readonly branch: readonly unknown[] }) =>
  `${branch.join()} ${access.join()}`;

/** Moves the commands, alarms and notes of an object to its new group, in the transaction of its move. */
export async function moveFollowing(
  database: Database,
  objectId: string,
  to: StoredPlace,
  session: ClientSession,
): Promise<void> {
  for (const store of FOLLOWING) {
    await collectionOf(database, store).updateMany({ object: new ObjectId(objectId) }, { $set: to }, { session });
  }
}

export interface TransitionOptions {
  readonly hint?: Document;
  /** Null: it ends when the database has answered, whenever that is. */
  readonly withinMs?: number | null;
}

/** Makes one transition: the change of the first command that matches; null if none does. */
export async function changeCommand(
  database: Database,
  filter: Filter<Document>,
  update: UpdateFilter<Document> | Document[],
  { hint, withinMs = LIMITS.databaseAnswerMs }: TransitionOptions = {},
): Promise<StoredCommand | null> {
  const options = { sort: { _id: 1 }, returnDocument: 'after', ...(hint && { hint }) } as const;
  const change = () => collectionOf(database, COMMANDS).findOneAndUpdate(filter, update, options);
  const changed = await mapDriverErrors(change, withinMs);
  return changed === null ? null : (toEntity(COMMANDS, changed) as StoredCommand);
}
