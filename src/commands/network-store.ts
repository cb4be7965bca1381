/**
 * Stores what becomes of commands to devices behind a network, such as LoRaWAN: a source of the device passes them on, and says what it hears
 * of them.
 */
import { ObjectId } from 'mongodb';
import { isId } from '../core/entity.js';
import type { Json } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { builtInStore } from '../core/stores.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { collectionOf } from '../platform/mongo/schema/collections.js';
import { changeCommand, type StoredCommand, WAITING_INDEX } from './command-store.js';

const COMMANDS = builtInStore('commands');

/**
 * Claims the object's oldest command that waits for this source of its device, and which no connection takes then; null when there is none.
 * It stays queued until the network has taken it.
 */
export async function claimForSource(
  database: Database,
  { objectId, sourceId }: PassedOn,
  nowMs: number,
): Promise<StoredCommand | null> {
  const filter = { object: new ObjectId(objectId), status: 'queued', expires: { $gt: nowMs } };
  return changeCommand(database, filter, { $set: { _bySource: sourceId } }, { hint: WAITING_INDEX });
}

/** An answer to a device that has commands. */
export interface CommandAnswer {
  /** Names the answer, so that its commands are found if it does not go out. */
  readonly answerId: string;
  readonly most: number;
  /** Aborted when the answer is given up: no more are taken. */
  readonly signal?: AbortSignal;
}

/**
 * Takes the commands that wait for an object, in their order: they go out with an answer of this source. Each is `sent` from then on, so
 * that it goes out once. It has no time limit: when it ends, the database takes no further ones. After a 503 it may have taken some, which
 * `returnFromAnswer` returns.
 */
export async function takeForAnswer(
  database: Database,
  { objectId, sourceId }: PassedOn,
  { answerId, most, signal }: CommandAnswer,
  nowMs: number,
): Promise<StoredCommand[]> {
  const filter = {
    object: new ObjectId(objectId),
    status: 'queued',
    _bySource: { $exists: false },
    expires: { $gt: nowMs },
  };
  const passedOn = { network: 'sent', _bySource: sourceId, _holder: answerId };
  const update = { $set: { status: 'sent', 'times.sent': nowMs, ...passedOn } };
  const taken: StoredCommand[] = [];
  while (taken.length < most && signal?.aborted !== true) {
    const command = await changeCommand(database, filter, update, { hint: WAITING_INDEX, withinMs: null });
    if (command === null) break;
    taken.push(command);
  }
  return taken;
}

/** These answers did not go out: their commands wait again, as if they had never been sent, unless they ended meanwhile. */
export async function returnFromAnswer(database: Database, answerIds: readonly string[]): Promise<void> {
  const filter = { _holder: { $in: [...answerIds] }, status: 'sent' };
  const update = { $set: { status: 'queued' }, $unset: { 'times.sent': '', network: '', _bySource: '', _holder: '' } };
  await mapDriverErrors(() => collectionOf(database, COMMANDS).updateMany(filter, update));
}

/** The source has not passed on what it claimed: connections of the device may take it. */
export async function releaseFromSource(database: Database, objectId: string): Promise<void> {
  const filter = { object: new ObjectId(objectId), status: 'queued', _bySource: { $exists: true } };
  const options = { hint: WAITING_INDEX };
  await mapDriverErrors(() =>
    collectionOf(database, COMMANDS).updateMany(filter, { $unset: { _bySource: '' } }, options),
  );
}

/** What became of a command that the network of its device has taken, or refused. */
export type NetworkOutcome =
  | { readonly status: 'sent'; readonly network: 'sent' | 'queued'; readonly downlinkId: string | null }
  | { readonly status: 'failed'; readonly result: Json };

/** Stores what the network said, unless the command has ended meanwhile, and the receipts that came before this. */
export async function noteNetwork(
  database: Database,
  commandId: string,
  outcome: NetworkOutcome,
  nowMs: number,
): Promise<void> {
  const filter = { _id: new ObjectId(commandId), status: 'queued' };
  const { status } = outcome;
  const said =
    outcome.status === 'failed'
      ? { result: outcome.result }
      : { network: outcome.network, ...(outcome.downlinkId !== null && { _downlink: outcome.downlinkId }) };
  await changeCommand(database, filter, { $set: { status, [`times.${status}`]: nowMs, ...said } });
  if (outcome.status === 'sent' && outcome.downlinkId !== null) await noteEarly(database, commandId, nowMs);
}

/** Stores the receipts of a command that came before its network had said what it calls it. None comes later: the command is not queued. */
async function noteEarly(database: Database, commandId: string, nowMs: number): Promise<void> {
  const named = { _id: new ObjectId(commandId), _early: { $exists: true } };
  const found = await mapDriverErrors(() => collectionOf(database, COMMANDS).findOne(named));
  if (found === null) return;
  const passedOn = { objectId: String(found.object), sourceId: found._bySource };
  const early: (Receipt & { readonly command: { readonly downlinkId: string } })[] = found._early;
  const own = early.filter(({ command }) => command.downlinkId === found._downlink);
  for (const receipt of own) await noteReceipt(database, passedOn, receipt, nowMs);
  await mapDriverErrors(() => collectionOf(database, COMMANDS).updateOne(named, { $unset: { _early: '' } }));
}

/** What a network says later of a command that it has taken: it was transmitted, the device has it, or the network gave up. */
export interface Receipt {
  /** The `_id` of the command, or what the network calls it. */
  readonly command: { readonly id: string } | { readonly downlinkId: string };
  readonly status: 'sent' | 'delivered' | 'failed';
  /** Why it failed. */
  readonly reason: string | null;
}

/** Through which source a command went to which object. */
export interface PassedOn {
  readonly objectId: string;
  readonly sourceId: string;
}

/**
 * Stores a receipt for a command that this source has passed on, unless it has ended or the device has confirmed it. A network may tell it
 * before the answer is stored that says what it calls the command. Most tell it once, whatever they are answered: it waits at the command
 * that is being passed on.
 */
export async function noteReceipt(
  database: Database,
  { objectId, sourceId }: PassedOn,
  { command, status, reason }: Receipt,
  nowMs: number,
): Promise<void> {
  if ('id' in command && !isId(command.id)) return;
  const named = 'id' in command ? { _id: new ObjectId(command.id) } : { _downlink: command.downlinkId };
  // By its `_id` a command is found while it is being passed on, too.
  const passedOn = { _bySource: sourceId, status: { $in: ['queued', 'sent'] } };
  const taken = { 'times.sent': { $ifNull: ['$times.sent', nowMs] } };
  const steps = {
    sent: { status: 'sent', ...taken, network: 'sent' },
    delivered: { status: 'delivered', ...taken, 'times.delivered': nowMs, network: 'sent' },
    failed: { status: 'failed', ...taken, 'times.failed': nowMs, result: { $literal: { message: reason } } },
  };
  const filter = { object: new ObjectId(objectId), ...passedOn, ...named };
  const store = () => changeCommand(database, filter, [{ $set: steps[status] }], { hint: WAITING_INDEX });
  if ((await store()) !== null || 'id' in command) return;
  const early = { $each: [{ command, status, reason }], $slice: -LIMITS.downlinkReceiptsKept };
  const claimed = { object: new ObjectId(objectId), status: 'queued', _bySource: sourceId };
  const update = { $push: { _early: early } } as never;
  const kept = await changeCommand(database, claimed, update, { hint: WAITING_INDEX });
  // What the network has said between the two looks.
  if (kept === null) await store();
}
