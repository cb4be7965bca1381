/** The hooks of stores: what a store does besides storing. */
import { groupHooks } from './groups.js';
import { handlerHooks } from './handlers.js';
import { objectHooks } from './objects.js';
import { storeHooks } from './stores.js';
import type { HookDeps, StoreHooks } from './types.js';
import { roleHooks, tokenHooks, userHooks } from './users.js';

export function createHooks(deps: HookDeps): ReadonlyMap<string, StoreHooks> {
  return new Map<string, StoreHooks>([
    ['objects', objectHooks(deps)],
    ['users', userHooks(deps)],
    ['roles', roleHooks(deps)],
    ['tokens', tokenHooks(deps)],
    ['groups', groupHooks(deps)],
    ['stores', storeHooks(deps)],
    ['handlers', handlerHooks(deps)],
  ]);
}
