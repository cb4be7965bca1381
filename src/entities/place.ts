/** Where a new entity belongs in the tree of groups. */
import { BSON, type ObjectId } from 'mongodb';
import type { Scope } from '../core/access.js';
import { type ApiError, badRequest } from '../core/errors.js';
import { builtInStore } from '../core/stores.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { findStored } from '../platform/mongo/schema/lookup.js';

/** The place of an entity: its group, and the chain of groups from the root down to it. */
export interface GroupPlace {
  readonly group: string;
  readonly branch: string[];
}

/** The same as it is stored. */
export interface StoredPlace {
  readonly group: ObjectId;
  readonly branch: readonly ObjectId[];
}

// For clients that import entities of another installation, with the group ids of that one.
const HINT = '; without it, or with ?group=mine, the entity belongs to your own group';

/** A 400 for a group that is not the caller's own, nor below it. */
export const notYours = (field: string, hint = ''): ApiError => badRequest(`${field}: not a group of yours${hint}`);

/** Returns the caller's own group, or the named one. Throws a 400 when that group is not below the caller's. */
export async function findPlace(
  database: Database,
  scope: Scope,
  named: string | null,
  field = 'group',
  hint = field === 'group' ? HINT : '',
): Promise<GroupPlace> {
  const group = named ?? scope.groupId;
  const found = await findStored(database, builtInStore('groups'), '_id', group.toLowerCase());
  const branch = found === null ? [] : (BSON.deserialize(found).branch as ObjectId[]).map(String);
  if (!branch.includes(scope.groupId)) throw notYours(field, hint);
  return { group, branch };
}
