/** Handlers as the service runs them: with what nobody is shown, their secrets and who set them up. */
import { type Document, ObjectId } from 'mongodb';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { COMMITTED_READ, type Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { toPlain } from '../platform/mongo/schema/mapping.js';

export interface StoredSecret {
  readonly secret: string;
  /** When it ends, ms since the epoch; null for the one that is in force. */
  readonly untilMs: number | null;
}

/** Who set the handler up last, and what the token permitted with which that was done; it sends no more than that. */
export interface Editor {
  readonly userId: string;
  readonly scopes: readonly string[] | null;
}

export interface StoredHandler {
  readonly id: string;
  readonly ownerId: string;
  readonly groupId: string;
  /** The group beneath the first one; null for what belongs to the first one itself. */
  readonly tenantId: string | null;
  readonly fields: JsonObject;
  readonly secrets: readonly StoredSecret[];
  readonly editor: Editor;
  /** Changes with those in whose hands it is; null as long as it is in the first ones. */
  readonly handover: string | null;
  /** Since when it is in these hands, ms since the epoch: what happened before is not sent. */
  readonly sinceMs: number;
  /** When somebody ended its pause after failures last; null if nobody did. */
  readonly resumedMs: number | null;
}

/** How a change of hands is stored. */
export const toHandover = (id: string, atMs: number): JsonObject => ({ _handover: { id, at: atMs } });

/** The change of hands that a stored handler names; null where there was none. */
export const handoverIn = (stored: JsonObject | Document | null | undefined): string | null =>
  (stored?._handover as { id?: string } | undefined)?.id ?? null;

const handlersOf = ({ db }: Database) => db.collection('handlers');
/** A handler that got its `url` later has no secret: nothing is sent until it gets one. */
const CALLED = { url: { $type: 'string' }, '_secrets.0': { $exists: true } };

/** Every handler that is called. */
export async function loadHandlers(database: Database): Promise<StoredHandler[]> {
  const find = () =>
    handlersOf(database)
      .find(CALLED, { maxTimeMS: LIMITS.databaseOperationMs, ...COMMITTED_READ })
      .toArray();
  return (await mapDriverErrors(find, LIMITS.databaseOperationMs)).map(toHandler);
}

/** One of them; null where it is not there, or not called. */
export async function loadHandler(database: Database, id: string): Promise<StoredHandler | null> {
  const named = { _id: new ObjectId(id), ...CALLED };
  const found = await mapDriverErrors(() => handlersOf(database).findOne(named, COMMITTED_READ));
  return found === null ? null : toHandler(found);
}

function toHandler(document: Document): StoredHandler {
  const { _id, owner, group, _secrets, _editor, _handover, _resumed, ...fields } = toPlain(document) as JsonObject;
  const { at = -Infinity } = (_handover ?? {}) as { at?: number };
  const [, tenantId = null] = fields.branch as string[];
  const editor = (_editor ?? {}) as { user?: string; scopes?: string[] | null };
  return {
    id: String(_id),
    ownerId: String(owner),
    groupId: String(group),
    tenantId,
    fields,
    secrets: (_secrets as { secret: string; until: number | null }[]).map(({ secret, until }) => ({
      secret,
      untilMs: until,
    })),
    editor: { userId: editor.user ?? String(owner), scopes: editor.scopes ?? null },
    handover: handoverIn(document),
    sinceMs: Math.max(Number(fields.time), at),
    resumedMs: typeof _resumed === 'number' ? _resumed : null,
  };
}

/** In whose hands a handler is, called or not; null for the first ones. */
export async function findHandover(database: Database, id: string): Promise<string | null> {
  const options = { projection: { _handover: 1 } };
  return handoverIn(await mapDriverErrors(() => handlersOf(database).findOne({ _id: new ObjectId(id) }, options)));
}

/** How many handlers with an address there are: of one tenant, a group just below the root, or of all. */
export async function countWebhooks(database: Database, tenant: string | null, max: number): Promise<number> {
  const filter = { url: { $type: 'string' as const }, ...(tenant !== null && { branch: new ObjectId(tenant) }) };
  return mapDriverErrors(() => handlersOf(database).countDocuments(filter, { limit: max }));
}

/** The receiver has said that it is gone. */
export async function deactivateHandler(database: Database, id: string, nowMs: number): Promise<void> {
  const update = { $set: { active: false, _at: nowMs } };
  await mapDriverErrors(() => handlersOf(database).updateOne({ _id: new ObjectId(id) }, update));
}

/** Ends its pause after failures in every instance. Many requests at once are one. */
export async function resumeHandler(database: Database, id: string, nowMs: number): Promise<void> {
  const before = { $not: { $gt: nowMs - LIMITS.webhookResumedMs, $lte: nowMs } };
  const update = { $set: { _resumed: nowMs } };
  await mapDriverErrors(() => handlersOf(database).updateOne({ _id: new ObjectId(id), _resumed: before }, update));
}

/** Another secret from now on; the one before it is valid until `untilMs`. */
export async function rotateSecret(
  database: Database,
  id: string,
  { secret, untilMs, editor }: { secret: string; untilMs: number; editor: Editor },
): Promise<void> {
  const former = { $slice: [{ $ifNull: ['$_secrets', []] }, 1] };
  const ending = { $map: { input: former, in: { secret: '$$this.secret', until: untilMs } } };
  const _secrets = { $concatArrays: [[{ secret, until: null }], ending] };
  const _editor = { $ifNull: ['$_editor', { user: new ObjectId(editor.userId), scopes: editor.scopes }] };
  await mapDriverErrors(() =>
    handlersOf(database).updateOne({ _id: new ObjectId(id) }, [{ $set: { _secrets, _editor } }]),
  );
}
