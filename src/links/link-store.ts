/** Share links as entities of `tokens`: counts, lists and views. */
import { type Document, type Filter, ObjectId } from 'mongodb';
import type { Scope } from '../core/access.js';
import { LIMITS } from '../core/limits.js';
import type { LinkHistory } from '../core/link.js';
import { builtInStore } from '../core/stores.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { scopeFilter } from '../platform/mongo/schema/visibility.js';

/** A link as its users see it, without its secret. */
export interface Link {
  readonly _id: string;
  readonly name: string;
  readonly object: string;
  readonly user: string;
  readonly time: number;
  readonly expiresAt: number;
  readonly fields: readonly string[] | null;
  readonly history: LinkHistory;
  readonly hasPin: boolean;
  /** How often it was opened, and when last. */
  readonly views: number;
  readonly lastViewed: number | null;
}

const TOKENS = 'tokens';

function toLink({ _id, name, user, time, expiresAt, _link: link }: Document): Link {
  return {
    _id: String(_id),
    name,
    object: String(link.object),
    user: String(user),
    time,
    expiresAt,
    fields: link.fields,
    history: link.history,
    hasPin: link.pinHash !== null,
    views: link.views,
    lastViewed: link.lastViewed,
  };
}

const ofObject = (objectId: string, nowMs: number): Filter<Document> => ({
  '_link.object': new ObjectId(objectId),
  expiresAt: { $gt: nowMs },
});

/** The links of an object that have not expired and that the scope sees, the newest first. */
export async function listLinks(
  database: Database,
  scope: Scope,
  { objectId, nowMs }: { readonly objectId: string; readonly nowMs: number },
): Promise<Link[]> {
  const filter = { $and: [ofObject(objectId, nowMs), scopeFilter(builtInStore(TOKENS), scope)] };
  const options = { sort: { _id: -1 }, limit: LIMITS.linksPerObject } as const;
  const found = await mapDriverErrors(() => database.db.collection(TOKENS).find(filter, options).toArray());
  return found.map(toLink);
}

/** Whether the scope sees a link of the object with this `_id`. */
export async function isLinkOf(database: Database, scope: Scope, objectId: string, linkId: string): Promise<boolean> {
  const named = { _id: new ObjectId(linkId), '_link.object': new ObjectId(objectId) };
  const filter = { $and: [named, scopeFilter(builtInStore(TOKENS), scope)] };
  return (await mapDriverErrors(() => database.db.collection(TOKENS).findOne(filter))) !== null;
}

export async function countLinksOfObject(database: Database, objectId: string, nowMs: number): Promise<number> {
  const options = { limit: LIMITS.linksPerObject };
  return mapDriverErrors(() => database.db.collection(TOKENS).countDocuments(ofObject(objectId, nowMs), options));
}

export async function countLinksOfUser(database: Database, userId: string, nowMs: number): Promise<number> {
  const filter = { user: new ObjectId(userId), '_link.object': { $exists: true }, expiresAt: { $gt: nowMs } };
  const options = { limit: LIMITS.linksPerUser };
  return mapDriverErrors(() => database.db.collection(TOKENS).countDocuments(filter, options));
}

export async function countView(database: Database, linkId: string, nowMs: number): Promise<void> {
  const update = { $inc: { '_link.views': 1 }, $set: { '_link.lastViewed': nowMs } };
  await mapDriverErrors(() => database.db.collection(TOKENS).updateOne({ _id: new ObjectId(linkId) }, update));
}

/** The name of a link, which its user may change. */
export async function readName(database: Database, linkId: string): Promise<string> {
  const found = await mapDriverErrors(() => database.db.collection(TOKENS).findOne({ _id: new ObjectId(linkId) }));
  return found?.name ?? '';
}
