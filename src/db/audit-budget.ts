/** How many refusals of one user or network are told one by one; those after that are told together, so that no flood fills the store. */
import { LRUCache } from 'lru-cache';
import type { ObjectId } from 'mongodb';
import { atMost } from '../model/cache-size.js';
import { LIMITS } from '../model/limits.js';
import { networkOf } from '../model/network.js';

/** Events that anybody can cause, as often as they like. */
const REFUSALS: ReadonlySet<string> = new Set(['login failed', 'login refused', 'forbidden']);

interface Refused {
  readonly action: string;
  readonly userId: string | null;
  readonly address: string;
}

export interface AuditBudget {
  /** Null where the event is told by itself; else the name of those that it is told with. */
  groupOf(event: Refused): string | null;
  /** The event that stands for a group now, if there is one. */
  find(group: string): ObjectId | null;
  /** A new one stands for the group. */
  set(group: string, id: ObjectId): void;
}

export function createAuditBudget(now: () => number): AuditBudget {
  const spent = new LRUCache<string, { readonly fromMs: number; count: number }>(atMost(LIMITS.auditActors));
  const groups = new LRUCache<string, { readonly fromMs: number; readonly id: ObjectId }>(atMost(LIMITS.auditActors));
  const isPresent = ({ fromMs }: { fromMs: number }): boolean => now() - fromMs < LIMITS.auditRefusalsMs;
  return {
    groupOf({ action, userId, address }) {
      if (!REFUSALS.has(action)) return null;
      const actor = userId ?? networkOf(address);
      const last = spent.get(actor);
      if (last === undefined || !isPresent(last)) spent.set(actor, { fromMs: now(), count: 1 });
      else if (last.count < LIMITS.auditRefusals) last.count++;
      else return `${action} ${actor}`;
      return null;
    },
    find(group) {
      const known = groups.get(group);
      return known !== undefined && isPresent(known) ? known.id : null;
    },
    set: (group, id) => void groups.set(group, { fromMs: now(), id }),
  };
}
