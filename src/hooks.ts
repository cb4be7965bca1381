/** The hooks of stores: what a store does besides storing. */
import { groupHooks } from './accounts/group-hooks.js';
import { roleHooks, tokenHooks, type UserHookDeps, userHooks } from './accounts/user-hooks.js';
import { ruleHooks } from './alarms/rule-hooks.js';
import { type ObjectHookDeps, objectHooks } from './devices/object-hooks.js';
import { sourceHooks } from './devices/sources/source-hooks.js';
import type { StoreHooks } from './entities/hooks.js';
import { type StoreHookDeps, storeHooks } from './entities/store-hooks.js';
import { viewHooks } from './entities/view-hooks.js';
import { type ScheduleHookDeps, scheduleHooks } from './reports/schedule-hooks.js';
import { type HandlerHookDeps, handlerHooks } from './webhooks/handler-hooks.js';

export type AllHookDeps = UserHookDeps & ObjectHookDeps & StoreHookDeps & HandlerHookDeps & ScheduleHookDeps;

export function createHooks(deps: AllHookDeps): ReadonlyMap<string, StoreHooks> {
  return new Map<string, StoreHooks>([
    ['objects', objectHooks(deps)],
    ['users', userHooks(deps)],
    ['roles', roleHooks(deps)],
    ['tokens', tokenHooks(deps)],
    ['groups', groupHooks(deps)],
    ['stores', storeHooks(deps)],
    ['sources', sourceHooks(deps)],
    ['handlers', handlerHooks(deps)],
    ['rules', ruleHooks(deps)],
    ['views', viewHooks(deps)],
    ['schedules', scheduleHooks(deps)],
  ]);
}
