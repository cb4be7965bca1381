/**
 * The active rules of the installation, compiled, with the rights of those behind them. Updated from changes: what follows from one is
 * computed for the rules that it changes, and for objects when they are looked at next.
 */
import { LRUCache } from 'lru-cache';
import type { Account } from '../accounts/accounts.js';
import { ACCESS_FIELDS, mayCallObject } from '../core/access.js';
import { type Change, mayHaveChanged } from '../core/change.js';
import { toApiError } from '../core/errors.js';
import type { Zone } from '../core/geofence.js';
import type { JsonObject } from '../core/json.js';
import { parseRule, type RuleSettings } from '../core/rule/rule.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { isMatchedBy } from '../webhooks/registry.js';
import { findActors, findReach, type RightsParts } from '../webhooks/rights.js';
import type { Reach } from '../webhooks/webhook.js';
import type { ActiveRule, SelectedObject } from './active-rule.js';
import { compileRule } from './evaluate.js';
import { conditionsOf, fencesOf, loadZones, toName, type Zones } from './references.js';
import { createRuleKeys, type RuleKeys } from './rule-keys.js';
import { type Concerned, concernedAddresses, createRuleReloads, type RuleReloads } from './rule-reloads.js';
import { createRuleSet, type RuleSet } from './rule-set.js';
import { loadRules, type StoredRule, showDisabled } from './rule-store.js';

/** What rules an object has, as of a version of the registry. */
export interface Matched {
  set: RuleSet;
  version: number;
}

/** Whether both, the owner of a rule and who set it up, may send the command now. */
export type MayCommand = (object: SelectedObject, command: string) => boolean;

export interface RuleRegistry {
  /** Whether there is no rule, and none may have been added. */
  isEmpty(): boolean;
  /** Whether any rule may select the object. */
  mayMatch(objectId: string): boolean;
  find(ruleId: string): ActiveRule | undefined;
  all(): Iterable<ActiveRule>;
  /** Whether any rule is about silence, which begins without a packet. */
  hasSilent(): boolean;
  /** Brings what rules the object has up to date. */
  update(object: SelectedObject & Matched): void;
  /** Whether a rule that may select an object with this audience has changed and is not read again yet. */
  isPending(audience: readonly string[]): boolean;
  /** Resolves when those are read that were pending. Throws 503. */
  current(audience: readonly string[]): Promise<void>;
  currentRule(ruleId: string): Promise<void>;
  load(): Promise<void>;
  apply(change: Change): void;
  /** Throws 503. */
  findMayCommand(rule: ActiveRule): Promise<MayCommand>;
  stop(): void;
}

export interface RuleRegistryOptions extends RightsParts {
  readonly database: Database;
  readonly findAccount: (userId: string) => Promise<Account | null>;
  readonly log: { warn(details: object, message: string): void };
}

/** What one reading of a rule has changed. */
interface Step {
  readonly before: ActiveRule | undefined;
  readonly after: ActiveRule | undefined;
}

interface State extends RuleRegistryOptions {
  readonly rules: Map<string, ActiveRule>;
  /** The rules by the addresses of what they read, and by what else they depend on. */
  readonly index: RuleKeys;
  readonly reloads: RuleReloads;
  /** Rules that name no objects, and those about silence. */
  readonly open: Set<string>;
  readonly silent: Set<string>;
  /** Objects of the same rules share them. */
  readonly sets: LRUCache<string, RuleSet>;
  /** The last changes; the newest one made the version. */
  readonly steps: Step[];
  version: number;
  serial: number;
  last: Promise<unknown>;
}

const KEPT_STEPS = 64;

/** `onRead` is told of rules that were read again. */
export function createRuleRegistry(
  options: RuleRegistryOptions,
  onRead: (ruleIds: readonly string[]) => void,
): RuleRegistry {
  const reloads = createRuleReloads({
    log: options.log,
    async read(ids) {
      await inTurn(state, () => reload(state, ids));
      onRead(ids);
    },
  });
  const state: State = {
    ...options,
    reloads,
    rules: new Map(),
    index: createRuleKeys(),
    open: new Set(),
    silent: new Set(),
    sets: new LRUCache({ max: 1_000 }),
    steps: [],
    version: 0,
    serial: 0,
    last: Promise.resolve(),
  };
  return {
    isEmpty: () => state.rules.size === 0 && reloads.isEmpty(),
    mayMatch: (id) => state.open.size > 0 || state.index.has(`named:${id}`) || !reloads.isEmpty(),
    find: (ruleId) => state.rules.get(ruleId),
    all: () => state.rules.values(),
    hasSilent: () => state.silent.size > 0,
    update: (object) => update(state, object),
    isPending: reloads.isPending,
    current: reloads.current,
    currentRule: reloads.currentRule,
    load: () => inTurn(state, () => load(state)),
    apply(change) {
      // Reading a member decodes it: most changes are packets, and their members are not needed.
      const { store } = change;
      if (!DECIDING.has(store)) return;
      for (const [id, concerned] of findAffected(state, change)) reloads.add(id, concerned);
      if (store === 'geofences') renameFence(state, change);
    },
    findMayCommand: (rule) => findMayCommand(state, rule),
    stop: reloads.stop,
  };
}

/** One after the other: a load that takes long must not undo what changed meanwhile. */
async function inTurn(state: State, work: () => Promise<void>): Promise<void> {
  const done = state.last.then(work);
  state.last = done.catch(() => undefined);
  await done;
}

function update(state: State, object: SelectedObject & Matched): void {
  const { steps, version } = state;
  const behind = version - object.version;
  if (behind === 0) return;
  object.version = version;
  if (behind > steps.length || object.set === NO_RULES) {
    object.set = setOf(state, match(state, object));
    return;
  }
  let rules: ActiveRule[] | null = null;
  for (const { before, after } of steps.slice(steps.length - behind)) {
    const wasIn = before !== undefined && (rules?.includes(before) ?? object.set.has(before));
    const isIn = after !== undefined && isSelected(after, object);
    if (!wasIn && !isIn) continue;
    rules ??= [...object.set.rules];
    if (wasIn) rules.splice(rules.indexOf(before), 1);
    if (isIn) rules.push(after);
  }
  if (rules !== null) object.set = setOf(state, rules);
}

function match({ rules, index }: State, object: SelectedObject): readonly ActiveRule[] {
  const found = new Set<ActiveRule>();
  for (const address of object.audience) {
    for (const ruleId of index.find(address)) {
      const rule = rules.get(ruleId);
      if (rule !== undefined && !found.has(rule) && isSelected(rule, object)) found.add(rule);
    }
  }
  return [...found];
}

/** Of an object that was never matched. */
export const NO_RULES = createRuleSet([]);
const EMPTY = createRuleSet([]);

function setOf({ sets }: State, rules: readonly ActiveRule[]): RuleSet {
  if (rules.length === 0) return EMPTY;
  const key = rules
    .map(({ serial }) => serial)
    .sort((a, b) => a - b)
    .join();
  const known = sets.get(key);
  if (known !== undefined) return known;
  const made = createRuleSet(rules);
  sets.set(key, made);
  return made;
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
  const read = await readRules(state, null);
  for (const id of [...state.rules.keys()]) if (!read.has(id)) replace(state, id, null);
  for (const [id, one] of read) replace(state, id, one);
}

async function reload(state: State, ids: readonly string[]): Promise<void> {
  const read = await readRules(state, ids);
  for (const id of ids) replace(state, id, read.get(id) ?? null);
}

/** A rule as it was read; without `rule` one that does not run as long as something else does not change. */
interface Read {
  readonly rule: ActiveRule | null;
  readonly stored: StoredRule;
}

/** Those of these rules that are active, all of them in one query. */
async function readRules(state: State, ids: readonly string[] | null): Promise<ReadonlyMap<string, Read>> {
  const stored = await loadRules(state.database, ids);
  const zones = new Map<string, Promise<Zones>>();
  const read = await Promise.all(stored.map(async (one) => ({ stored: one, rule: await prepare(state, one, zones) })));
  return new Map(read.map((one) => [one.stored.id, one]));
}

function replace(state: State, id: string, read: Read | null): void {
  const { rules, index, open, silent, steps } = state;
  const before = rules.get(id);
  const after = read?.rule ?? undefined;
  rules.delete(id);
  index.delete(id);
  open.delete(id);
  silent.delete(id);
  if (read !== null) index.set(id, keysOf(read));
  if (after !== undefined) {
    rules.set(id, after);
    if (after.reach.objects === null) open.add(id);
    if (after.compiled.silentMs !== null) silent.add(id);
  }
  if (before === undefined && after === undefined) return;
  steps.push({ before, after });
  if (steps.length > KEPT_STEPS) steps.shift();
  state.version++;
}

/** What a rule depends on, as keys of the index. */
function* keysOf({ stored, rule }: Read): Iterable<string> {
  yield `actor:${stored.ownerId}`;
  yield `actor:${stored.editor.userId}`;
  if (rule === null) return;
  const { reach, compiled } = rule;
  yield* concernedAddresses(stored);
  for (const id of reach.objects ?? []) yield `named:${id}`;
  for (const id of reach.rights?.roleIds ?? []) yield `role:${id}`;
  for (const key of reach.rights?.ownIds ?? []) yield `object:${key}`;
  for (const key of compiled.settings.select.objects ?? []) yield `object:${key}`;
  for (const one of conditionsOf(compiled.settings)) {
    if (one.kind === 'geofence') for (const id of one.ids) yield `fence:${id}`;
  }
}

async function prepare(
  state: State,
  stored: StoredRule,
  zones: Map<string, Promise<Zones>>,
): Promise<ActiveRule | null> {
  const settings = findSettings(stored);
  if (settings === null || !settings.isActive) return null;
  const reach = await findReach(state, stored, settings.select.objects);
  const scope = reach.rights?.scope ?? null;
  await show(state, stored, findReason(reach));
  if (scope === null) return null;
  // Rules of one owner that are read together have the same zones.
  const fences = JSON.stringify([scope.userId, fencesOf(settings)]);
  const finding = zones.get(fences) ?? loadZones(state.database, scope, settings).then(remembering);
  zones.set(fences, finding);
  const { zoneOf, names } = await finding;
  const compiled = compileRule(settings, zoneOf, names);
  const { fields } = stored;
  const key = JSON.stringify([fields.when ?? null, fields.clear ?? null, fields.schedule ?? null]);
  const seen = { isDear: false, isExhausted: false };
  return { id: stored.id, serial: ++state.serial, stored, compiled, key, reach, scope, seen };
}

/** Why a rule sees no object at all; null where it may see some. */
function findReason({ rights }: Reach): string | null {
  if (rights === null) return 'its owner, or who set it up, is no active user';
  return rights.permitted?.size === 0 ? 'its owner, or who set it up, may read no objects' : null;
}

function remembering({ zoneOf, names }: Zones): Zones {
  const known = new Map<string, Zone>();
  return {
    zoneOf(ids) {
      const key = ids.join();
      const zone = known.get(key) ?? zoneOf(ids);
      known.set(key, zone);
      return zone;
    },
    names,
  };
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

/** Rules need not be read again for it; those that are being read may have the name before. */
function renameFence(state: State, change: Change): void {
  const { id, after } = change;
  if (after === null || !mayHaveChanged(change, ['name'])) return;
  void inTurn(state, async () => {
    for (const ruleId of state.index.find(`fence:${id}`)) {
      const names = state.rules.get(ruleId)?.compiled.fenceNames;
      // One that the rule's owner does not see has none.
      if (names?.has(id)) names.set(id, toName(after.name));
    }
  });
}

const NONE: ReadonlyMap<string, readonly Concerned[]> = new Map();

/** The stores whose changes may change rules. */
const DECIDING: ReadonlySet<string> = new Set(['rules', 'geofences', 'users', 'roles', 'objects']);

/** The rules whose conditions, rights or objects the change may decide, and whom they concerned before and concern now. */
function findAffected(state: State, change: Change): ReadonlyMap<string, readonly Concerned[]> {
  const { store, id, before, after } = change;
  if (store === 'rules') {
    if (isShown(change)) return NONE;
    const known = state.rules.get(id)?.stored;
    return new Map([[id, [...toConcerned(before), ...toConcerned(after), ...(known === undefined ? [] : [known])]]]);
  }
  const affected = new Map<string, readonly Concerned[]>();
  for (const key of dependentOn(change)) {
    for (const ruleId of state.index.find(key)) {
      const known = state.rules.get(ruleId)?.stored;
      affected.set(ruleId, known === undefined ? [] : [known]);
    }
  }
  return affected;
}

/** What the service itself shows at a rule changes nothing. */
const isShown = ({ kind, changed }: Change): boolean =>
  kind === 'changed' && changed?.every((name) => name === 'disabledReason') === true;

const toConcerned = (image: JsonObject | null): Concerned[] =>
  image === null ? [] : [{ ownerId: String(image.owner), groupId: String(image.group) }];

/** The keys of the index under which the rules are that depend on what has changed. */
function dependentOn(change: Change): readonly string[] {
  const { store, id, before, after } = change;
  if (store === 'geofences') return mayHaveChanged(change, FENCE_FIELDS) ? [`fence:${id}`] : [];
  if (store === 'users') return [`actor:${id}`];
  if (store === 'roles') return [`role:${id}`];
  // An own id may mean another object now.
  if (change.kind === 'changed' && !mayHaveChanged(change, ['id'])) return [];
  return [
    ...new Set([before?.id, after?.id].flatMap((key) => (key === undefined || key === null ? [] : [`object:${key}`]))),
  ];
}

/** What decides where a geofence is, and whether the owner of a rule sees it. */
const FENCE_FIELDS = ['geometry', 'radius', ...ACCESS_FIELDS, 'group'];

async function findMayCommand(state: State, { stored }: ActiveRule): Promise<MayCommand> {
  const actors = await findActors(state, stored);
  return ({ id, object }, command) => {
    const named = { objectId: id, ownId: String(object.id) };
    return actors?.every((actor) => mayCallObject(actor, named, 'POST', ['commands', command])) ?? false;
  };
}
