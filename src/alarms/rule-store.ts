/** Rules as the service runs them: with who set them up. */
import { type Document, ObjectId } from 'mongodb';
import type { AccessFields } from '../core/access.js';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { toPlain } from '../platform/mongo/schema/mapping.js';
import type { Editor } from '../webhooks/handlers.js';

export interface StoredRule {
  readonly id: string;
  readonly ownerId: string;
  readonly groupId: string;
  /** Whose work it is, in turns with that of others. */
  readonly tenant: string;
  readonly editor: Editor;
  readonly fields: JsonObject;
  /** Changes with the rule: when it was changed last. */
  readonly revision: number;
  readonly disabledReason: string | null;
}

/** The group below the root; what is of the root group is of its owner. */
export const tenantOf = ({ owner, branch }: Pick<AccessFields, 'owner' | 'branch'>): string => branch[1] ?? owner;

const rulesOf = ({ db }: Database) => db.collection('rules');

/** The rules that are active, all or those with these `_id`s. Throws 503. */
export async function loadRules(database: Database, ids: readonly string[] | null): Promise<StoredRule[]> {
  const named = ids === null ? {} : { _id: { $in: ids.map((id) => new ObjectId(id)) } };
  const find = () =>
    rulesOf(database)
      .find({ ...named, active: { $ne: false } }, { maxTimeMS: LIMITS.databaseOperationMs })
      .toArray();
  return (await mapDriverErrors(find, LIMITS.databaseOperationMs)).map(toRule);
}

/** A rule, active or not; null where there is none. Throws 503. */
export async function loadRule(database: Database, id: string): Promise<StoredRule | null> {
  const found = await mapDriverErrors(() => rulesOf(database).findOne({ _id: new ObjectId(id) }));
  return found === null ? null : toRule(found);
}

function toRule(document: Document): StoredRule {
  const { _id, owner, group, branch, _editor, ...fields } = toPlain(document) as JsonObject;
  const editor = (_editor ?? {}) as { user?: string; scopes?: string[] | null };
  return {
    id: String(_id),
    ownerId: String(owner),
    groupId: String(group),
    tenant: tenantOf({ owner: String(owner), branch: (branch ?? []) as string[] }),
    editor: { userId: editor.user ?? String(owner), scopes: editor.scopes ?? null },
    fields,
    revision: Number(fields._at ?? fields.time),
    disabledReason: typeof fields.disabledReason === 'string' ? fields.disabledReason : null,
  };
}

/** Shows at the rule why it does not run, or not wholly; null: it does. */
export async function showDisabled(database: Database, id: string, reason: string | null): Promise<void> {
  const update = reason === null ? { $unset: { disabledReason: 1 as const } } : { $set: { disabledReason: reason } };
  const other = reason === null ? { $exists: true } : { $ne: reason };
  await mapDriverErrors(() => rulesOf(database).updateOne({ _id: new ObjectId(id), disabledReason: other }, update));
}
