/** Limits how many refusals and changes of one user or network become separate events; further ones are counted in one event. */
import { LRUCache } from 'lru-cache';
import type { ObjectId } from 'mongodb';
import { cacheSize } from '../core/cache-size.js';
import { LIMITS } from '../core/limits.js';
import { networkOf } from '../core/network.js';

/** Events that strangers can cause without limit. */
const REFUSALS: ReadonlySet<string> = new Set([
  'login failed',
  'login refused',
  'forbidden',
  'link opened',
  'link refused',
]);

/** The action of an event that says what of an entity was changed. */
export const ENTITY_CHANGED = 'entity changed';

interface Limited {
  readonly action: string;
  readonly userId: string | null;
  readonly address: string;
}

export interface AuditBudget {
  /** Null for a separate event; else the name of the group in which it is counted. */
  groupOf(event: Limited): string | null;
  /** The current event of a group; null when there is none. */
  find(group: string): ObjectId | null;
  /** Makes an event the current one of the group. */
  set(group: string, id: ObjectId): void;
}

/** How many events of this kind of one user or network are separate ones within the period; null for all. */
function mostOf(action: string): number | null {
  if (action === ENTITY_CHANGED) return LIMITS.auditChanges;
  return REFUSALS.has(action) ? LIMITS.auditRefusals : null;
}

export function createAuditBudget(now: () => number): AuditBudget {
  const spent = new LRUCache<string, { readonly fromMs: number; count: number }>(cacheSize(LIMITS.auditActors));
  const groups = new LRUCache<string, { readonly fromMs: number; readonly id: ObjectId }>(
    cacheSize(LIMITS.auditActors),
  );
  const isCurrent = ({ fromMs }: { fromMs: number }): boolean => now() - fromMs < LIMITS.auditRefusalsMs;
  return {
    groupOf({ action, userId, address }) {
      const most = mostOf(action);
      if (most === null) return null;
      const actor = userId ?? networkOf(address);
      const key = action === ENTITY_CHANGED ? `${action} ${actor}` : actor;
      const last = spent.get(key);
      if (last === undefined || !isCurrent(last)) spent.set(key, { fromMs: now(), count: 1 });
      else if (last.count < most) last.count++;
      else return `${action} ${actor}`;
      return null;
    },
    find(group) {
      const known = groups.get(group);
      return known !== undefined && isCurrent(known) ? known.id : null;
    },
    set: (group, id) => void groups.set(group, { fromMs: now(), id }),
  };
}
