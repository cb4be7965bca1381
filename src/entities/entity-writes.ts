/** Changes and removes one entity of any store, with the hooks of its store; for single requests and for bulk ones. */

import { type Caller, scopeOf } from '../core/access.js';
import { type ChangedValues, changedValues } from '../core/changed-values.js';
import { type Entity, merge, ownFields } from '../core/entity.js';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { STORES, type Store } from '../core/stores.js';
import type { FairQueue } from '../platform/fair-queue.js';
import type { Database } from '../platform/mongo/driver/client.js';
import type { StoreHooks } from './hooks.js';
import { changeEntity, getChangeable, removeEntity, unchangedSince } from './write.js';

export interface WriteDeps {
  readonly database: Database;
  readonly hooks: ReadonlyMap<string, StoreHooks>;
  readonly checkQueue: FairQueue;
  /** Invalidates what caches derived from an entity. Called after a write, before the answer. */
  readonly invalidate: (store: string, id: string) => void;
  readonly now: () => number;
}

/** The caller of a write, and its store. */
export interface Writer {
  readonly store: Store;
  readonly caller: Caller;
}

/** Checking entities against schemas of custom stores is queued fairly per caller. */
export const queueCheck = <T>(deps: WriteDeps, { store, caller }: Writer, work: () => Promise<T>): Promise<T> =>
  STORES.has(store.name) ? work() : deps.checkQueue.run(caller, work);

/** What a change has changed. */
export interface RecordedChange extends Omit<ChangedValues, 'before' | 'after'> {
  readonly store: string;
  readonly _id: string;
  /** Null for an entity outside the caller's group: not everyone who learns of the change may see it. */
  readonly values: Pick<ChangedValues, 'before' | 'after'> | null;
}

/** Merges a patch, which `parsePatch` has checked, into the entity. Returns its `_id`. `record` is told what has changed. */
export async function changeOne(
  deps: WriteDeps,
  writer: Writer,
  key: string,
  given: JsonObject,
  record: (change: RecordedChange) => void,
): Promise<string> {
  const { store, caller } = writer;
  const hooks = deps.hooks.get(store.name);
  const patch = await preparePatch(deps, writer, key, given);
  const present = isRecorded(store, patch) ? await getChangeable(deps.database, store, scopeOf(caller), key) : null;
  const sinceMs = hooks?.unchangedSince?.(caller, key, patch);
  const onlyIf = sinceMs === undefined ? undefined : unchangedSince(sinceMs);
  const change = { patch, nowMs: deps.now(), onlyIf };
  const scope = scopeOf(caller);
  const _id = await queueCheck(deps, writer, () => changeEntity(deps.database, store, scope, key, change));
  if (present !== null) recordChange(writer, present, patch, given, record);
  await hooks?.afterChange?.({ _id }, patch);
  deps.invalidate(store.name, _id);
  return _id;
}

/** Devices and other systems change the status of objects, and entities of stores that administrators added, all day. */
const isRecorded = ({ name }: Store, patch: JsonObject): boolean =>
  STORES.has(name) && !(name === 'objects' && Object.keys(patch).every((field) => field === 'status'));

function recordChange(
  { store, caller }: Writer,
  present: Entity,
  patch: JsonObject,
  given: JsonObject,
  record: (change: RecordedChange) => void,
): void {
  const after = ownFields(store, merge(present, patch, store.replaced));
  const { fields, before, after: values } = changedValues(ownFields(store, present), after);
  // A password is stored under another name.
  const replaced = Object.keys(given).filter((name) => !Object.hasOwn(patch, name));
  if (fields.length + replaced.length === 0) return;
  record({
    store: store.name,
    _id: present._id,
    fields: [...fields, ...replaced].slice(0, LIMITS.auditFields),
    values: present.branch?.includes(caller.groupId) ? { before, after: values } : null,
  });
}

async function preparePatch(deps: WriteDeps, { store, caller }: Writer, key: string, given: JsonObject) {
  const hooks = deps.hooks.get(store.name);
  return hooks?.preparePatch ? hooks.preparePatch(caller, key, given) : given;
}

/** Throws what `changeOne` would throw because of rights, references and the schema; changes nothing. */
export async function checkChange(deps: WriteDeps, writer: Writer, key: string, given: JsonObject): Promise<void> {
  const { store, caller } = writer;
  const patch = await preparePatch(deps, writer, key, given);
  const present = await getChangeable(deps.database, store, scopeOf(caller), key);
  const after = ownFields(store, merge(present, patch, store.replaced));
  await queueCheck(deps, writer, async () => store.checkWhole?.(after, caller.userId));
}

/** Throws what `removeOne` would throw; removes nothing. */
export async function checkRemoval(deps: WriteDeps, { store, caller }: Writer, key: string): Promise<void> {
  await getChangeable(deps.database, store, scopeOf(caller), key);
  await deps.hooks.get(store.name)?.beforeRemove?.(caller, key);
}

/** Removes the entity; gives it, and what `readLast` finds before all that belongs to the entity is removed as well. */
export async function removeOne<T>(
  deps: WriteDeps,
  { store, caller }: Writer,
  key: string,
  readLast: (removed: Entity) => T,
): Promise<{ removed: Entity; last: Awaited<T> }> {
  const hooks = deps.hooks.get(store.name);
  await hooks?.beforeRemove?.(caller, key);
  const removed = await removeEntity(deps.database, store, scopeOf(caller), key);
  deps.invalidate(store.name, removed._id);
  const last = await readLast(removed);
  await hooks?.afterRemove?.(removed);
  return { removed, last };
}
