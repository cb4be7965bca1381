/** Replays that were asked for, and how far each of them is: stored before they are answered, one of each handler at a time. */
import { type Document, ObjectId } from 'mongodb';
import { ApiError, conflict, tooManyRequests, unavailable } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import type { Requester } from '../packets/removals.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import type { PacketPlace } from './past-packets.js';
import type { ReplayRange } from './replay.js';

/** Everything before it is done. */
export interface ReplayPlace {
  /** In the history, for a replay after a position. */
  readonly position: string | null;
  /** The last object that is done; and how far the one after it is, if it was begun. */
  readonly doneObject: string | null;
  readonly object: string | null;
  readonly packet: PacketPlace | null;
}

export interface Replay {
  readonly id: string;
  readonly handlerId: string;
  readonly tenantId: string | null;
  /** In whose hands the handler was (`StoredHandler.handover`). */
  readonly handover: string | null;
  readonly range: ReplayRange;
  /** Where a replay after a position ends. */
  readonly until: string;
  readonly by: Requester;
  readonly timeMs: number;
  readonly place: ReplayPlace;
  /** How many messages it has given. */
  readonly messages: number;
  /** Grows with each step. */
  readonly step: number;
}

const START: ReplayPlace = { position: null, doneObject: null, object: null, packet: null };
const replaysOf = ({ db }: Database) => db.collection('replays');

/** Throws 409 where the handler has one, 429, 503. */
export async function storeReplay(
  database: Database,
  asked: Pick<Replay, 'handlerId' | 'tenantId' | 'handover' | 'range' | 'until' | 'by' | 'timeMs'>,
): Promise<string> {
  const { tenantId } = asked;
  const [ofCaller, ofTenant, inAll] = await mapDriverErrors(() =>
    Promise.all([
      replaysOf(database).countDocuments({ 'by.userId': asked.by.userId }, { limit: LIMITS.webhookReplaysPerCaller }),
      tenantId === null
        ? 0
        : replaysOf(database).countDocuments({ tenantId }, { limit: LIMITS.webhookReplaysPerTenant }),
      replaysOf(database).estimatedDocumentCount(),
    ]),
  );
  if (ofCaller >= LIMITS.webhookReplaysPerCaller) throw tooManyRequests(1, 'too many replays of yours at once');
  if (ofTenant >= LIMITS.webhookReplaysPerTenant) {
    throw tooManyRequests(1, 'too many replays of your organisation at once');
  }
  if (inAll >= LIMITS.webhookReplays) throw unavailable('too many replays at once');
  const { handlerId, ...rest } = asked;
  const fresh = { ...rest, handler: new ObjectId(handlerId), place: START, messages: 0, step: 0 };
  try {
    const { insertedId } = await mapDriverErrors(() => replaysOf(database).insertOne(fresh));
    return insertedId.toHexString();
  } catch (error) {
    if (error instanceof ApiError && error.status === 409) throw conflict('a replay of the handler is under way');
    throw error;
  }
}

/** All of them, the oldest first. */
export async function loadReplays(database: Database): Promise<Replay[]> {
  const find = () =>
    replaysOf(database)
      .find({}, { sort: { _id: 1 }, limit: LIMITS.webhookReplays })
      .toArray();
  return (await mapDriverErrors(find)).map(toReplay);
}

const toReplay = ({ _id, handler, ...rest }: Document): Replay =>
  ({ handover: null, ...rest, id: String(_id), handlerId: String(handler) }) as Replay;

/** It goes on from there; false where another instance was quicker. */
export async function advanceReplay(
  database: Database,
  { id, step }: Replay,
  { place, messages }: Pick<Replay, 'place' | 'messages'>,
): Promise<boolean> {
  const filter = { _id: new ObjectId(id), step };
  const update = { $set: { place, messages, step: step + 1 } };
  return (await mapDriverErrors(() => replaysOf(database).updateOne(filter, update))).matchedCount === 1;
}

export async function removeReplay(database: Database, id: string): Promise<void> {
  await mapDriverErrors(() => replaysOf(database).deleteOne({ _id: new ObjectId(id) }));
}
