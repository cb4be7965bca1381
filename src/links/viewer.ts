/**
 * Who looks at a shared object: identified by the secret of a link, then by a token of the view. The link shows what its user may still
 * share, so the rights of that user are checked each time.
 */
import { BSON } from 'mongodb';
import type { Accounts } from '../accounts/accounts.js';
import type { Tokens } from '../accounts/tokens.js';
import { type Caller, scopeOf } from '../core/access.js';
import type { Entity } from '../core/entity.js';
import type { LinkTerms } from '../core/link.js';
import { mayShare } from '../core/link.js';
import { isValidOwnId } from '../core/own-id.js';
import { builtInStore } from '../core/stores.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { findByKey } from '../platform/mongo/schema/lookup.js';
import { toEntity } from '../platform/mongo/schema/mapping.js';
import { isOfHash, tokenIdIn } from './secret.js';

export interface ViewerDeps {
  readonly database: Database;
  readonly accounts: Accounts;
  readonly tokens: Tokens;
  readonly now: () => number;
}

/** A link that is open, with its object as it is now. */
export interface Viewer {
  readonly linkId: string;
  readonly expiresAtMs: number;
  readonly terms: LinkTerms;
  readonly object: Entity;
  /** The user of the link, with no more rights than the link has. */
  readonly caller: Caller;
}

const OBJECTS = builtInStore('objects');

/** By the secret of the link, without its PIN; null if the link does not exist, has expired, or may no longer show the object. */
export async function findBySecret(deps: ViewerDeps, secret: unknown): Promise<Viewer | null> {
  const linkId = tokenIdIn(secret);
  const viewer = linkId === null ? null : await findViewer(deps, linkId);
  return viewer !== null && isOfHash(String(secret), viewer.terms.secretHash) ? viewer : null;
}

/** By the token of a view that was opened. */
export async function findByViewToken(deps: ViewerDeps, token: string): Promise<Viewer | null> {
  const claims = deps.tokens.verify(token);
  if (claims === null) return null;
  const viewer = await findViewer(deps, claims.tokenId);
  if (viewer === null || viewer.caller.userId !== claims.userId) return null;
  const view = { id: claims.tokenId, expiresAtMs: claims.expiresAtMs };
  return { ...viewer, caller: { ...viewer.caller, token: view } };
}

async function findViewer({ database, accounts, now }: ViewerDeps, linkId: string): Promise<Viewer | null> {
  const record = await accounts.findToken(linkId);
  if (record === null || record.link === null || record.expiresAtMs <= now()) return null;
  const account = await accounts.findAccount(record.userId);
  if (account === null) return null;
  const { link: terms, expiresAtMs, scopes, scopeObjects } = record;
  const found = await findByKey(database, OBJECTS, scopeOf(account), terms.objectId);
  if (found === null) return null;
  const object = toEntity(OBJECTS, BSON.deserialize(found));
  const ownId = typeof object.id === 'string' && isValidOwnId(object.id) ? object.id : null;
  if (!mayShare({ ...account, scopes: null }, { objectId: object._id, ownId })) return null;
  const caller = { ...account, scopes, scopeObjects, session: null, token: { id: linkId, expiresAtMs } };
  return { linkId, expiresAtMs, terms, object, caller };
}
