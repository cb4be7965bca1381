/** Limits how many refusals of one user or network become separate events; further ones are counted in one event. */
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

interface Refused {
  readonly action: string;
  readonly userId: string | null;
  readonly address: string;
}

export interface AuditBudget {
  /** Null for a separate event; else the name of the group in which it is counted. */
  groupOf(event: Refused): string | null;
  /** The current event of a group; null when there is none. */
  find(group: string): ObjectId | null;
  /** Makes an event the current one of the group. */
  set(group: string, id: ObjectId): void;
}

export function createAuditBudget(now: () => number): AuditBudget {
  const spent = new LRUCache<string, { readonly fromMs: number; count: number }>(cacheSize(LIMITS.auditActors));
  const groups = new LRUCache<string, { readonly fromMs: number; readonly id: ObjectId }>(
    cacheSize(LIMITS.auditActors),
  );
  const isCurrent = ({ fromMs }: { fromMs: number }): boolean => now() - fromMs < LIMITS.auditRefusalsMs;
  return {
    groupOf({ action, userId, address }) {
      if (!REFUSALS.has(action)) return null;
      const actor = userId ?? networkOf(address);
      const last = spent.get(actor);
      if (last === undefined || !isCurrent(last)) spent.set(actor, { fromMs: now(), count: 1 });
      else if (last.count < LIMITS.auditRefusals) last.count++;
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
