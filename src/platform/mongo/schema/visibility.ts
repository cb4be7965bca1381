/**
 * The rule of visibility for MongoDB: the entity's branch contains the caller's group, the caller owns it, or it is shared with the
 * caller (docs/reference/permissions.md). Here in all its forms: a filter, an aggregation expression, a test of bytes, and the indexes.
 * For events the same rule is `audienceOf` and `addressesOf` in core/access.ts. One property test compares all of them.
 */
import { BSONType, type Document, type Filter, type IndexDescription, ObjectId } from 'mongodb';
import type { Scope } from '../../../core/access.js';
import type { Store } from '../../../core/stores.js';
import { findField, holdsObjectId, readObjectId } from '../bson/reader.js';

/** The properties of a store that the rule needs. */
type Kind = Pick<Store, 'builtIn' | 'followsObject'>;

/** As a query filter. */
export function scopeFilter({ builtIn, followsObject }: Kind, scope: Scope): Filter<Document> {
  const user = new ObjectId(scope.userId);
  const owned = followsObject ? { owner: user, _withoutOwner: { $ne: true } } : { owner: user };
  const conditions: Filter<Document>[] = [{ branch: new ObjectId(scope.groupId) }, owned, { access: user }];
  if (builtIn) conditions.push({ _builtin: true });
  return { $or: conditions };
}

/** As an aggregation expression. */
export function visibleExpression({ builtIn, followsObject }: Kind, scope: Scope): Document {
  const user = new ObjectId(scope.userId);
  const holds = (name: string, id: ObjectId): Document => ({ $in: [id, { $ifNull: [`$${name}`, []] }] });
  const isOwner = { $eq: ['$owner', user] };
  const owned = followsObject ? { $and: [isOwner, { $ne: ['$_withoutOwner', true] }] } : isOwner;
  const conditions = [holds('branch', new ObjectId(scope.groupId)), owned, holds('access', user)];
  if (builtIn) conditions.push({ $eq: ['$_builtin', true] });
  return { $or: conditions };
}

/** For the bytes of a stored entity. Does not consider the owner in stores that follow their object (`isVisibleToOwner`). */
export function isVisible({ builtIn, followsObject }: Kind, scope: Scope, document: Uint8Array): boolean {
  return (
    holdsObjectId(document, 'branch', scope.groupId) ||
    (!followsObject && readObjectId(document, 'owner') === scope.userId) ||
    holdsObjectId(document, 'access', scope.userId) ||
    (builtIn && findField(document, '_builtin', BSONType.bool)?.[0] === 1)
  );
}

/** The indexes for `scopeFilter`, one per condition. */
export function visibilityIndexes({ builtIn }: Kind): IndexDescription[] {
  const fields = ['branch', 'owner', 'access', ...(builtIn ? ['_builtin'] : [])];
  return fields.map((field) => ({ key: { [field]: 1, _id: 1 } }));
}
