/** What a handler becomes when it runs: the rights of those behind it, as they are now. */
import type { Account } from '../accounts/accounts.js';
import {
  addressesOf,
  mayCall,
  objectKeysIn,
  type PermissionHolder,
  permittedObjects,
  type Scope,
  type ScopeObject,
  scopeOf,
} from '../core/access.js';
import { isId } from '../core/entity.js';
import type { WebhookSettings } from '../core/webhook.js';
import type { StoredHandler } from './handlers.js';
import type { Reach, Rights, Webhook } from './webhook.js';

export interface RightsParts {
  readonly findAccount: (userId: string) => Promise<Account | null>;
  /** Objects by `_id` or own id, as the scope sees them. */
  readonly findObjects: (scope: Scope, keys: readonly string[]) => Promise<string[]>;
  /** The objects that scopes name by `_id`. */
  readonly findScopeObjects: (scopes: readonly string[]) => Promise<ScopeObject[]>;
}

/** A user behind something that acts for its owner, with the scopes with which it was set up. */
export type Actor = Account & Required<Pick<PermissionHolder, 'scopes' | 'scopeObjects'>>;

export async function toWebhook(
  parts: RightsParts,
  stored: StoredHandler,
  settings: WebhookSettings,
): Promise<Webhook> {
  return { stored, settings, ...(await findReach(parts, stored, settings.objects)) };
}

/** Who set something up that acts for its owner. */
export type Acting = Pick<StoredHandler, 'ownerId' | 'groupId' | 'editor'>;

/** What it reaches now; `named`: the objects that it names, null for all. */
export async function findReach(parts: RightsParts, stored: Acting, named: readonly string[] | null): Promise<Reach> {
  const actors = await findActors(parts, stored);
  const [owner] = actors ?? [];
  if (actors === null || owner === undefined) return { rights: null, objects: new Set(), groupAddress: null };
  const scope = scopeOf(owner);
  return {
    rights: { scope, ...(await findRights(parts, actors)) },
    objects: named === null ? null : await resolveObjects(parts, scope, named),
    groupAddress: stored.groupId === owner.groupId ? null : `group:${stored.groupId}`,
  };
}

/** Null where one of them does not exist or is not active. */
export async function findActors(
  { findAccount, findScopeObjects }: Pick<RightsParts, 'findAccount' | 'findScopeObjects'>,
  { ownerId, editor }: Pick<Acting, 'ownerId' | 'editor'>,
): Promise<Actor[] | null> {
  const users = new Map<string, readonly string[] | null>([
    [ownerId, null],
    [editor.userId, editor.scopes],
  ]);
  const actors: Actor[] = [];
  for (const [userId, scopes] of users) {
    const account = await findAccount(userId);
    if (account === null) return null;
    actors.push({ ...account, scopes, scopeObjects: await findScopeObjects(scopes ?? []) });
  }
  return actors;
}

async function findRights(parts: RightsParts, actors: readonly Actor[]): Promise<Omit<Rights, 'scope'>> {
  const named: Set<string>[] = [];
  const ownIds: string[] = [];
  for (const actor of actors) {
    const audible = permittedObjects(actor);
    if (audible === 'all') continue;
    named.push(await resolveObjects(parts, scopeOf(actor), audible));
    ownIds.push(...objectKeysIn([...actor.credentials, ...(actor.scopes ?? [])]).filter((key) => !isId(key)));
  }
  const [first, ...others] = named;
  return {
    addresses: actors.map((actor) => addressesOf(scopeOf(actor))),
    userIds: actors.map(({ userId }) => userId),
    roleIds: actors.flatMap(({ roleId }) => roleId ?? []),
    ownIds,
    readsAlarms: actors.every((actor) => mayCall(actor, 'GET', ['alarms'])),
    permitted: first === undefined ? null : new Set([...first].filter((id) => others.every((ids) => ids.has(id)))),
  };
}

/** An `_id` stands for itself: whether the object is seen is asked of each event. */
async function resolveObjects(parts: RightsParts, scope: Scope, keys: readonly string[]): Promise<Set<string>> {
  const ownIds = keys.filter((key) => !isId(key));
  const found = ownIds.length === 0 ? [] : await parts.findObjects(scope, ownIds);
  return new Set([...keys.filter(isId).map((id) => id.toLowerCase()), ...found]);
}
