/** Groups: a tree, whose members see what is below them; it can be moved, and removed when it is empty. */
import { findPlace } from '../../db/accounts.js';
import { getEntity } from '../../db/entities.js';
import { countContents, moveGroup, settleBranches } from '../../db/groups.js';
import { createEntity } from '../../db/writes.js';
import { badRequest, conflict } from '../../errors.js';
import { scopeOf } from '../../model/access.js';
import { LIMITS } from '../../model/limits.js';
import { builtInStore } from '../../model/stores.js';
import { type Rule, type RuleParts, readReference, toNewEntity } from './rule.js';

export function groupRule(parts: RuleParts): Rule {
  const { database } = parts;
  const settler = createSettler(parts);
  return {
    async create(caller, { fields }) {
      const parent = fields.parent == null ? caller.groupId : readReference('parent', fields.parent);
      const place = await findPlace(database, scopeOf(caller), parent, 'parent');
      const { branch } = place;
      if (branch.length >= LIMITS.branchDepth)
        throw badRequest(`parent: groups nest at most ${LIMITS.branchDepth} deep`);
      const entity = toNewEntity(caller, { ...fields, parent }, place, parts.now());
      // A group belongs to itself: its members see it.
      const own = { ...entity, group: entity._id, branch: [...branch, entity._id] };
      return createEntity(database, builtInStore('groups'), own);
    },
    async preparePatch(caller, key, { parent, ...patch }) {
      if (parent === undefined) return patch;
      const group = await getEntity(database, builtInStore('groups'), scopeOf(caller), key);
      // Read, edited and sent back whole: the parent that it has is no move.
      const parentId = parent === null ? null : readReference('parent', parent);
      if (parentId === (group.parent ?? null)) return patch;
      if (parentId === null || group._id === caller.groupId) throw badRequest('parent: not a group of yours');
      await moveGroup(database, scopeOf(caller), { groupId: group._id, parentId, nowMs: parts.now() });
      settler.later(group._id);
      return patch;
    },
    async beforeRemove(caller, key) {
      const { _id } = await getEntity(database, builtInStore('groups'), scopeOf(caller), key);
      const contents = await countContents(database, _id);
      if (contents.length === 0) return;
      throw conflict(
        `the group is not empty: ${contents.map(({ store, count }) => `${count} in ${store}`).join(', ')}`,
      );
    },
  };
}

interface Settler {
  later(groupId: string): void;
}

/**
 * Once more when whatever had read the old branch has been written. One timer for all moves, and once for a group that was moved many
 * times: it is done `moveSettleMs` after the last of them.
 */
function createSettler({ database, inBackground }: RuleParts): Settler {
  let dueMs = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  const settleDue = async (): Promise<void> => {
    const nowMs = performance.now();
    const due = [...dueMs].filter(([, ms]) => ms <= nowMs).map(([groupId]) => groupId);
    dueMs = new Map([...dueMs].filter(([, ms]) => ms > nowMs));
    try {
      for (const groupId of due) await settleBranches(database, groupId);
    } finally {
      timer = undefined;
      schedule();
    }
  };
  const schedule = (): void => {
    if (dueMs.size === 0 || timer !== undefined) return;
    const waitMs = Math.min(...dueMs.values()) - performance.now();
    timer = setTimeout(() => inBackground(settleDue()), Math.max(1, Math.ceil(waitMs))).unref();
  };
  return {
    later(groupId) {
      dueMs.set(groupId, performance.now() + LIMITS.moveSettleMs);
      schedule();
    },
  };
}
