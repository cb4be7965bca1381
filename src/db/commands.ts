/** The journal of commands: each step of a command is one atomic write, so that of any two who try, one does it. */
import { BSON, type Document, type Filter, ObjectId, type UpdateFilter } from 'mongodb';
import { conflict, notFound } from '../errors.js';
import type { Scope } from '../model/access.js';
import {
  type Command,
  type CommandStatus,
  endedSo,
  OPEN_STATUSES,
  type Outcome,
  statusesBefore,
} from '../model/command.js';
import { type Entity, isId } from '../model/entity.js';
import { LIMITS } from '../model/limits.js';
import type { Page, Selection } from '../model/list.js';
import { builtInStore } from '../model/stores.js';
import { findStored } from './by-key.js';
import { collectionOf, type Database } from './connect.js';
import { toEntity, translated } from './documents.js';
import { listEntities, summarizeEntities } from './entities.js';
import type { JsonPage } from './pages.js';

/** A command as the journal has it. */
export type StoredCommand = Entity & Command;

const COMMANDS = builtInStore('commands');
const OBJECTS = builtInStore('objects');
// Left to itself, the database may look through everything that ever was sent to the object.
const WAITING_INDEX = { object: 1, status: 1, _id: 1 };

/**
 * A new `_id`, greater than those that any instance gave in an earlier millisecond: commands are carried out in the
 * order of their `_id`s, and an ordinary ObjectId knows only seconds.
 */
export function newCommandId(nowMs: number): string {
  const bytes = Buffer.from(new ObjectId().id);
  bytes.writeUInt32BE(Math.floor(nowMs / 1_000), 0);
  // Of the five bytes that are the process' own, two make room for the millisecond.
  bytes.writeUInt16BE(nowMs % 1_000, 4);
  return bytes.toString('hex');
}

/**
 * The object's oldest command that waits, or that was sent by another holder and not confirmed: `sent` by this holder
 * now; null when there is none. A command whose time is over is not given. `holder` names one connection of the device;
 * who fails here (503) may hold a command without knowing, and lets go with `releaseCommands`.
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
    expires: { $gt: nowMs },
  };
  return step(database, filter, { $set: { status: 'sent', 'times.sent': nowMs, _holder: holder } }, WAITING_INDEX);
}

/** The device has it: `delivered`; null when it was not `sent` (any more), or not by this holder. Null holder: any. */
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
  return step(database, filter, {
    $set: { status: 'delivered', 'times.delivered': nowMs },
    $unset: { _holder: '' },
  });
}

/**
 * What the device says became of a command of this object: its end. Said again it changes nothing, and the command is
 * given as it is. Throws 404, also for a command of another object; 409 when it has ended otherwise.
 */
export async function finishCommand(
  database: Database,
  { objectId, commandId }: { objectId: string; commandId: string },
  outcome: Outcome,
  nowMs: number,
): Promise<StoredCommand> {
  if (!isId(commandId)) throw notFound();
  const named = { _id: new ObjectId(commandId), object: new ObjectId(objectId) };
  const { status, result } = outcome;
  const finished = await step(database, { ...named, status: { $in: statusesBefore(status) } }, [
    {
      $set: {
        status,
        // What was done was sent and delivered, also where the device fetched it, or answered before it confirmed.
        'times.sent': { $ifNull: ['$times.sent', nowMs] },
        'times.delivered': { $ifNull: ['$times.delivered', nowMs] },
        [`times.${status}`]: nowMs,
        ...(result !== undefined && { result: { $literal: result } }),
      },
    },
    { $unset: '_holder' },
  ]);
  if (finished !== null) return finished;
  // The step that found nothing to do waited for the majority all the same: what is read now is durable.
  const present = await translated(() => collectionOf(database, COMMANDS).findOne(named));
  if (present === null) throw notFound();
  const command = toEntity(COMMANDS, present) as StoredCommand;
  if (endedSo(command, outcome)) return command;
  throw conflict(`the command is ${command.status} already`);
}

/**
 * Whether something waits for the object: what is asked in one turn is one question. Thousands of devices connect at once,
 * and for most of them there is nothing to claim.
 */
export async function hasWaiting(database: Database, objectId: string, nowMs: number): Promise<boolean> {
  const waiting = await database.inTurn('commands that wait', [objectId], async (asked: string[]) => {
    const objects = { object: { $in: [...new Set(asked)].map((id) => new ObjectId(id)) } };
    const filter = { ...objects, status: { $in: statusesBefore('sent') }, expires: { $gt: nowMs } };
    const options = { hint: WAITING_INDEX, maxTimeMS: LIMITS.databaseAnswerMs };
    const found = await translated(() => collectionOf(database, COMMANDS).distinct('object', filter, options));
    return new Set(found.map(String));
  });
  return waiting.has(objectId);
}

/** Connections went: what they had sent and their devices did not confirm waits again. Gives how many. */
export async function releaseCommands(database: Database, holders: readonly string[]): Promise<number> {
  const filter = { _holder: { $in: [...holders] }, status: { $in: statusesBefore('queued') } };
  const { modifiedCount } = await translated(() =>
    collectionOf(database, COMMANDS).updateMany(filter, { $set: { status: 'queued' }, $unset: { _holder: '' } }),
  );
  return modifiedCount;
}

/** Ends every command whose time is over: `expired`, whether or not the device has it. Gives how many. */
export async function expireCommands(database: Database, nowMs: number): Promise<number> {
  const commands = collectionOf(database, COMMANDS);
  const overdue: Filter<Document> = { status: { $in: [...OPEN_STATUSES] }, expires: { $lte: nowMs } };
  const options = { projection: { _id: 1 }, limit: LIMITS.expiryBatch };
  for (let expired = 0; ; ) {
    const some = await translated(() => commands.find(overdue, options).toArray());
    if (some.length === 0) return expired;
    const { modifiedCount } = await translated(() =>
      commands.updateMany(
        { _id: { $in: some.map(({ _id }) => _id) }, ...overdue },
        { $set: { status: 'expired', 'times.expired': nowMs }, $unset: { _holder: '' } },
      ),
    );
    expired += modifiedCount;
  }
}

/** Commands of one object: all, or those of these statuses. */
export interface CommandSelection {
  readonly objectId: string;
  readonly statuses: readonly CommandStatus[] | null;
  readonly nowMs: number;
}

/** A page of an object's commands that the scope sees, in the order that they are carried out. */
export function listCommands(
  database: Database,
  scope: Scope,
  selection: CommandSelection,
  page: Page,
): Promise<JsonPage> {
  // Few wait, and their device asks again and again.
  const isShort = selection.statuses?.every((status) => OPEN_STATUSES.includes(status)) === true;
  return listEntities(database, COMMANDS, scope, page, { conditions: conditionsOf(selection), isShort });
}

/** docs/reference/http-api.md, `meta`, of the same. */
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
  // Whose time is over waits for nothing, also in the seconds until it is `expired`: no device shall carry it out.
  const inTime = { $or: [{ status: { $nin: [...OPEN_STATUSES] } }, { expires: { $gt: nowMs } }] };
  return [...conditions, { status: { $in: [...statuses] } }, inTime];
}

/** Whether the object has as many commands waiting as it may have. */
export async function isQueueFull(database: Database, objectId: string): Promise<boolean> {
  const waiting = { object: new ObjectId(objectId), status: 'queued' };
  const limit = LIMITS.commandsWaiting;
  const count = await translated(() => collectionOf(database, COMMANDS).countDocuments(waiting, { limit }));
  return count >= limit;
}

/**
 * Whether who gives a command sees it as a member of the object's branch at most: the one who is no longer there, or
 * with whom the object is no longer shared, is not to read what the device answers.
 */
export function isWithoutOwner(object: Pick<Entity, 'owner' | 'access'>, userId: string): boolean {
  return object.owner !== userId && !object.access.includes(userId);
}

/**
 * Gives commands the `access` of their object: one that was just stored with `access`, or all of them. It is looked at
 * again after each write: of all who do this at the same time, the last one to write leaves what is true.
 */
export async function followAccess(
  database: Database,
  objectId: string,
  just: { readonly commandId: string; readonly access: readonly string[] } | null = null,
): Promise<void> {
  const named = { object: new ObjectId(objectId), ...(just && { _id: new ObjectId(just.commandId) }) };
  for (let known = just?.access.join(); ; ) {
    const object = await findStored(database, OBJECTS, '_id', objectId);
    if (object === null) return;
    const { access, owner } = BSON.deserialize(object);
    if (access.join() === known) return;
    const stale = { ...named, access: { $ne: access } };
    const _withoutOwner = { $not: [{ $in: ['$owner', [...access, owner]] }] };
    await translated(() => collectionOf(database, COMMANDS).updateMany(stale, [{ $set: { access, _withoutOwner } }]));
    known = access.join();
  }
}

async function step(
  database: Database,
  filter: Filter<Document>,
  update: UpdateFilter<Document> | Document[],
  hint?: Document,
): Promise<StoredCommand | null> {
  const options = { sort: { _id: 1 }, returnDocument: 'after', ...(hint && { hint }) } as const;
  const changed = await translated(() => collectionOf(database, COMMANDS).findOneAndUpdate(filter, update, options));
  return changed === null ? null : (toEntity(COMMANDS, changed) as StoredCommand);
}
