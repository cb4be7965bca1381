/**
 * Permissions that change while events are delivered. The feed applies a change of them where it stands in the order of changes; the
 * database may be ahead of the feed. A subscriber with permissions that the feed does not know yet, and objects as the feed knows them,
 * would see what nobody was ever permitted to see: an object that had left the group before the user came.
 */
import { LRUCache } from 'lru-cache';
import type { Accounts, Version } from '../accounts/accounts.js';
import { type Caller, forObject } from '../core/access.js';
import type { Change } from '../core/change.js';
import { unavailable } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';

/**
 * The caller after a change of its user or its role, as the change itself says; null where it does not say everything: of a user that
 * got another role, another object or none any more, and where the database no longer has the document. `isRenamed`: the objects of the
 * caller, its own and those that its token names, may have other names by now.
 */
export function callerAfter(caller: Caller, { store, kind, after }: Change, isRenamed: boolean): Caller | null {
  if (isRenamed && (caller.object !== null || (caller.scopeObjects ?? []).length > 0)) return null;
  if (store === 'roles' && kind === 'removed') return { ...caller, roleId: null, credentials: [] };
  if (after === null) return null;
  const changedMs = { ...caller.changedMs, [store === 'roles' ? 'role' : 'user']: after._at ?? null };
  if (store === 'roles') {
    return { ...caller, credentials: forObject((after.credentials ?? []) as string[], caller.object), changedMs };
  }
  const { active, login, group, branch, role = null, object = null } = after as unknown as StoredUser;
  if (active === false || role !== caller.roleId || object !== null || caller.object !== null) return null;
  return { ...caller, login, groupId: group, tenantId: branch[1] ?? null, changedMs };
}

interface StoredUser {
  readonly active?: boolean;
  readonly login: string;
  readonly group: string;
  readonly branch: readonly string[];
  readonly role?: string | null;
  readonly object?: string | null;
}

/** A subscriber that is not authenticated yet. */
export interface Waiting {
  readonly caller: Caller;
  /** Whether its caller may be outdated. */
  readonly outdated: boolean;
  readonly gone: boolean;
}

export interface DeliveredRights {
  /** To be called with each change of users and roles, in order. */
  note(change: Change): void;
  /** Whether the feed has delivered the permissions of this caller. */
  has(caller: Caller): boolean;
  /** Resolves when it has, or when the caller is outdated or gone. Throws 503 at `untilMs` of the steady clock. */
  wait(waiting: Waiting, untilMs: number): Promise<void>;
}

export interface DeliveredRightsOptions {
  /** By the clock: every change that was stored before is delivered. */
  readonly deliveredToMs: () => number;
  /** Up to where every change is delivered; null while that is unknown. */
  readonly deliveredTo: () => string | null;
  readonly wasAt: Accounts['wasAt'];
}

export function createDeliveredRights({ deliveredToMs, deliveredTo, wasAt }: DeliveredRightsOptions): DeliveredRights {
  /** Of users and roles that were created or changed lately, their last change that the feed knows. */
  const delivered = new LRUCache<string, number>({ max: LIMITS.cachedAccounts });
  const reading = new Map<string, Promise<boolean>>();
  const noted = (id: string): number => delivered.get(id) ?? Number.NEGATIVE_INFINITY;
  const note = (id: string, changedMs: number): void => void delivered.set(id, Math.max(noted(id), changedMs));
  const isDelivered = ({ id, changedMs, createdMs }: Known): boolean =>
    Math.max(createdMs, changedMs ?? 0) < deliveredToMs() - LIMITS.clockSkewMs || noted(id) >= (changedMs ?? 0);
  const has = (caller: Caller): boolean => versionsOf(caller).every(isDelivered);
  /** All sockets of a user come back together. */
  const wasDelivered = (version: Version, position: string): Promise<boolean> => {
    const key = `${version.id} ${version.changedMs} ${position}`;
    const read = reading.get(key) ?? wasAt(version, position).finally(() => reading.delete(key));
    reading.set(key, read);
    return read;
  };
  return {
    note: ({ id, after }) => void (after !== null && note(id, Number(after._at ?? 0))),
    has,
    async wait(waiting, untilMs) {
      const position = deliveredTo();
      for (const version of versionsOf(waiting.caller)) {
        if (position === null || isDelivered(version)) continue;
        // Before this feed began.
        if (await wasDelivered(version, position)) note(version.id, version.changedMs ?? 0);
      }
      while (!has(waiting.caller) && !waiting.outdated && !waiting.gone) {
        if (clock.steadyMs() > untilMs) throw unavailable('the live feed does not know your current permissions yet');
        await clock.wait(LIMITS.historyWaitMs);
      }
    },
  };
}

interface Known extends Version {
  readonly createdMs: number;
}

function versionsOf({ userId, roleId, changedMs, createdMs }: Caller): Known[] {
  const versions: Known[] = [{ store: 'users', id: userId, changedMs: changedMs.user, createdMs: createdMs.user }];
  if (roleId !== null)
    versions.push({ store: 'roles', id: roleId, changedMs: changedMs.role, createdMs: createdMs.role });
  return versions;
}
