/** The active rules of the installation, compiled, with the rights of those behind them. Updated from changes. */
import type { Account } from '../accounts/accounts.js';
import { mayCallObject, type Scope } from '../core/access.js';
import type { Change } from '../core/change.js';
import { toApiError } from '../core/errors.js';
import type { JsonObject } from '../core/json.js';
import { parseRule, type RuleSettings } from '../core/rule/rule.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { isMatchedBy } from '../webhooks/registry.js';
import { findActors, findReach, type RightsParts } from '../webhooks/rights.js';
import type { Reach } from '../webhooks/webhook.js';
import { type CompiledRule, compileRule } from './evaluate.js';
import { conditionsOf, loadZones } from './references.js';
import { loadRule, loadRules, type StoredRule, showDisabled } from './rule-store.js';

export interface ActiveRule {
  readonly id: string;
  readonly stored: StoredRule;
  readonly compiled: CompiledRule;
  /** The same as long as the conditions are. */
  readonly key: string;
  readonly reach: Reach;
  /** Of its owner; null where that is no active user. */
  readonly scope: Scope | null;
  readonly fenceIds: ReadonlySet<string>;
}

/** An object as rules select it. */
export interface SelectedObject {
  readonly id: string;
  readonly audience: readonly string[];
  readonly branch: readonly string[];
  readonly object: JsonObject;
}

export interface RuleRegistry {
  isEmpty(): boolean;
  /** Whether any rule may select the object. */
  mayMatch(objectId: string): boolean;
  find(ruleId: string): ActiveRule | undefined;
  all(): Iterable<ActiveRule>;
  match(object: SelectedObject): readonly ActiveRule[];
  /** Grows with every change of what it matches. */
  version(): number;
  load(): Promise<void>;
  apply(change: Change): undefined | Promise<void>;
  /** The rules that a change has changed. */
  affectedBy(change: Change): readonly string[];
  /** Whether both, the owner and who set the rule up, may send the command. */
  mayCommand(rule: ActiveRule, object: SelectedObject, command: string): Promise<boolean>;
}

export interface RuleRegistryOptions extends RightsParts {
  readonly database: Database;
  readonly findAccount: (userId: string) => Promise<Account | null>;
  readonly log: { warn(details: object, message: string): void };
}

interface State extends RuleRegistryOptions {
  readonly rules: Map<string, ActiveRule>;
  /** The objects that rules name; null while a rule names none. */
  named: ReadonlySet<string> | null;
  version: number;
  affected: { readonly position: string; readonly ids: readonly string[] };
  last: Promise<unknown>;
}

export function createRuleRegistry(options: RuleRegistryOptions): RuleRegistry {
  const affected = { position: '', ids: [] };
  const state: State = {
    ...options,
    rules: new Map(),
    named: new Set(),
    version: 0,
    affected,
    last: Promise.resolve(),
  };
  return {
    isEmpty: () => state.rules.size === 0,
    mayMatch: (objectId) => state.named?.has(objectId) ?? true,
    find: (ruleId) => state.rules.get(ruleId),
    all: () => state.rules.values(),
    match: (object) => [...state.rules.values()].filter((rule) => isSelected(rule, object)),
    version: () => state.version,
    load: () => inTurn(state, () => load(state)),
    apply(change) {
      const ids = findAffected(state, change);
      if (ids.length === 0) return undefined;
      state.affected = { position: change.position, ids };
      return inTurn(state, () => reload(state, ids));
    },
    affectedBy: ({ position, store, id }) =>
      store === 'rules' ? [id] : state.affected.position === position ? state.affected.ids : [],
    mayCommand: (rule, object, command) => mayCommand(state, rule, object, command),
  };
}

/** One after the other: a load that takes long must not undo what changed meanwhile. */
async function inTurn(state: State, work: () => Promise<void>): Promise<void> {
  const done = state.last.then(work);
  state.last = done.catch(() => undefined);
  await done;
}

function isSelected({ compiled, reach }: ActiveRule, { id, audience, branch, object }: SelectedObject): boolean {
  if (!isMatchedBy(reach, { objectId: id, audience, limits: null })) return false;
  const { group, model, labels } = compiled.settings.select;
  if (group !== null && !branch.includes(group)) return false;
  if (model !== null && object.model !== model) return false;
  const own = Array.isArray(object.labels) ? object.labels : [];
  return labels === null || labels.some((label) => own.includes(label));
}

async function load(state: State): Promise<void> {
  const stored = await loadRules(state.database);
  const rules = await Promise.all(stored.map((one) => prepare(state, one)));
  state.rules.clear();
  for (const rule of rules) if (rule !== null) state.rules.set(rule.id, rule);
  arrange(state);
}

function arrange(state: State): void {
  state.version++;
  const named = new Set<string>();
  for (const { reach } of state.rules.values()) {
    if (reach.objects === null) {
      state.named = null;
      return;
    }
    for (const id of reach.objects) named.add(id);
  }
  state.named = named;
}

async function prepare(state: State, stored: StoredRule): Promise<ActiveRule | null> {
  const settings = findSettings(stored);
  if (settings === null || !settings.isActive) return null;
  const reach = await findReach(state, stored, settings.select.objects);
  const scope = reach.rights?.scope ?? null;
  await show(state, stored, reach.rights === null ? 'its owner, or who set it up, is no active user' : null);
  const zoneOf = scope === null ? null : await loadZones(state.database, scope, settings);
  if (zoneOf === null) return null;
  const { fields } = stored;
  const compiled = compileRule(settings, zoneOf);
  const key = JSON.stringify([fields.when ?? null, fields.clear ?? null, fields.schedule ?? null]);
  const fences = conditionsOf(settings).flatMap((one) => (one.kind === 'geofence' ? one.ids : []));
  return { id: stored.id, stored, compiled, key, reach, scope, fenceIds: new Set(fences) };
}

async function show(
  { database, log }: State,
  { id, disabledReason }: StoredRule,
  reason: string | null,
): Promise<void> {
  if (disabledReason === reason) return;
  await showDisabled(database, id, reason).catch((error) =>
    log.warn({ err: error, rule: id }, 'failed to show why a rule does not run'),
  );
}

function findSettings({ fields }: StoredRule): RuleSettings | null {
  try {
    return parseRule(fields);
  } catch (error) {
    if (toApiError(error).status === 400) return null;
    throw error;
  }
}

async function reload(state: State, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    const stored = await loadRule(state.database, id);
    const rule = stored === null ? null : await prepare(state, stored);
    if (rule === null) state.rules.delete(id);
    else state.rules.set(id, rule);
  }
  arrange(state);
}

/** The rules whose conditions, rights or objects the change may decide. */
function findAffected({ rules }: State, change: Change): readonly string[] {
  // Reading a member decodes it: most changes are packets, and their members are not needed.
  const { store, kind } = change;
  if (store === 'packets' || store === 'alarms' || store === 'commands') return [];
  const { id, changed } = change;
  if (store === 'rules') {
    // What the service itself shows at a rule changes nothing.
    const isOwn = kind === 'changed' && changed?.every((name) => name === 'disabledReason') === true;
    return isOwn ? [] : [id];
  }
  if (rules.size === 0) return [];
  const all = [...rules.values()];
  const idsOf = (some: readonly ActiveRule[]): string[] => some.map((rule) => rule.id);
  if (store === 'geofences') return idsOf(all.filter(({ fenceIds }) => fenceIds.has(id)));
  if (store === 'users') {
    return idsOf(all.filter(({ stored }) => stored.ownerId === id || stored.editor.userId === id));
  }
  if (store === 'roles') return idsOf(all.filter(({ reach }) => reach.rights?.roleIds.includes(id)));
  if (store !== 'objects' || (changed !== null && !changed.includes('id') && kind === 'changed')) return [];
  // An own id may mean another object now.
  const ownIds = [change.before?.id, change.after?.id].map(String);
  return idsOf(
    all.filter(({ compiled }) => compiled.settings.select.objects?.some((objectKey) => ownIds.includes(objectKey))),
  );
}

async function mayCommand(
  state: State,
  { stored }: ActiveRule,
  { id, object }: SelectedObject,
  command: string,
): Promise<boolean> {
  const actors = await findActors(state, stored);
  const named = { objectId: id, ownId: String(object.id) };
  return actors?.every((actor) => mayCallObject(actor, named, 'POST', ['commands', command])) ?? false;
}
