/** Groups form a tree whose members see the entities below. A group can be moved, and removed if it is empty. */

import { scopeOf } from '../core/access.js';
import { badRequest, conflict } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { builtInStore } from '../core/stores.js';
import { type HookDeps, parseReference, type StoreHooks, toNewEntity } from '../entities/hooks.js';
import { findPlace } from '../entities/place.js';
import { getEntity } from '../entities/read.js';
import { createEntity } from '../entities/write.js';
import { clock, type Timer } from '../platform/clock.js';
import { countContents, moveGroup, settleBranches } from './group-moves.js';

export function groupHooks(deps: HookDeps): StoreHooks {
  const { database } = deps;
  const settler = createBranchSettler(deps);
  return {
    async create(caller, { fields }) {
      const parent = fields.parent == null ? caller.groupId : parseReference('parent', fields.parent);
      const place = await findPlace(database, scopeOf(caller), parent, 'parent');
      const { branch } = place;
      if (branch.length >= LIMITS.branchDepth)
        throw badRequest(`parent: groups nest at most ${LIMITS.branchDepth} deep`);
      const entity = toNewEntity(caller, { ...fields, parent }, place, deps.now());
      // A group is a member of itself, so that its members see it.
      const own = { ...entity, group: entity._id, branch: [...branch, entity._id] };
      return createEntity(database, builtInStore('groups'), own);
    },
    async preparePatch(caller, key, { parent, ...patch }) {
      if (parent === undefined) return patch;
      const group = await getEntity(database, builtInStore('groups'), scopeOf(caller), key);
      // Clients may send the whole entity back: an unchanged parent is no move.
      const parentId = parent === null ? null : parseReference('parent', parent);
      if (parentId === (group.parent ?? null)) return patch;
      if (parentId === null || group._id === caller.groupId) throw badRequest('parent: not a group of yours');
      await moveGroup(database, scopeOf(caller), { groupId: group._id, parentId, nowMs: deps.now() });
      settler.schedule(group._id);
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

interface BranchSettler {
  schedule(groupId: string): void;
}

/**
 * Updates the branches below a moved group again, `groupMoveSettleMs` after its last move: requests that had read the old branch have
 * finished their writes by then. One timer serves all groups.
 */
function createBranchSettler({ database, inBackground }: HookDeps): BranchSettler {
  let dueMsByGroup = new Map<string, number>();
  let timer: Timer | undefined;
  const settleDue = async (): Promise<void> => {
    const nowMs = clock.steadyMs();
    const due = [...dueMsByGroup].filter(([, ms]) => ms <= nowMs).map(([groupId]) => groupId);
    dueMsByGroup = new Map([...dueMsByGroup].filter(([, ms]) => ms > nowMs));
    try {
      for (const groupId of due) await settleBranches(database, groupId);
    } finally {
      timer = undefined;
      startTimer();
    }
  };
  const startTimer = (): void => {
    if (dueMsByGroup.size === 0 || timer !== undefined) return;
    const waitMs = Math.min(...dueMsByGroup.values()) - clock.steadyMs();
    timer = clock.setTimeout(() => inBackground(settleDue()), Math.max(1, Math.ceil(waitMs))).unref();
  };
  return {
    schedule(groupId) {
      dueMsByGroup.set(groupId, clock.steadyMs() + LIMITS.groupMoveSettleMs);
      startTimer();
    },
  };
}
