/**
 * Compares the states of partitions with the objects and rules that there are: what changed while nobody followed, such as during a gap
 * of the change stream or a takeover, is found by it.
 */
import { ObjectId } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import { startTurnClock } from '../live/turn-clock.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { partitionOf } from '../processing/processor.js';
import type { HeldState, PartitionMemory } from './partition-memory.js';
import type { MatchedObject, RuleObjects } from './rule-objects.js';
import type { RuleRegistry } from './rule-registry.js';
import type { RuleSet } from './rule-set.js';

export interface ReconcileParts {
  readonly database: Database;
  readonly registry: RuleRegistry;
  readonly objects: RuleObjects;
}

/** An object of a partition that is to be looked at again. */
export interface Outdated {
  readonly index: number;
  readonly objectId: string;
  readonly tenant: string;
}

/** The objects of these partitions that are to be looked at again. Throws 503. */
export async function* findOutdated(
  parts: ReconcileParts,
  memories: ReadonlyMap<number, PartitionMemory>,
): AsyncGenerator<Outdated> {
  const turn = startTurnClock();
  const found = new Set<string>();
  for await (const matched of matchObjects(parts, memories)) {
    for (const { id, tenant, set } of matched) {
      const index = partitionOf(id, LIMITS.partitions);
      const memory = memories.get(index);
      if (memory === undefined) continue;
      found.add(id);
      if (!areCurrent(set, memory.states.get(id))) yield { index, objectId: id, tenant };
      await turn.yieldIfLong();
    }
  }
  for (const [index, memory] of memories) {
    const remembered = [memory.states, memory.evaluated, memory.objects].flatMap((known) => [...known.keys()]);
    const missing = remembered.filter((id) => !found.has(id));
    for await (const objectId of findGone(parts, missing)) yield { index, objectId, tenant: '' };
  }
}

/** The objects that have states, or may lack one: of a rule about silence, which begins with no packet, any object may. */
async function* matchObjects(
  { registry, objects }: ReconcileParts,
  memories: ReadonlyMap<number, PartitionMemory>,
): AsyncGenerator<readonly MatchedObject[]> {
  if (registry.hasSilent()) return yield* objects.match({});
  for (const { states } of memories.values()) {
    for (const ids of pagesOf([...states.keys()])) yield* objects.match(named(ids));
  }
}

/** Those of the objects that are no more. */
async function* findGone({ database }: ReconcileParts, objectIds: readonly string[]): AsyncGenerator<string> {
  for (const ids of pagesOf(objectIds)) {
    const find = () =>
      database.db
        .collection('objects')
        .find(named(ids), { projection: { _id: 1 } })
        .toArray();
    const found = new Set((await mapDriverErrors(find)).map(({ _id }) => String(_id)));
    for (const id of ids) if (!found.has(id)) yield id;
  }
}

function* pagesOf(ids: readonly string[]): Generator<readonly string[]> {
  for (let from = 0; from < ids.length; from += LIMITS.historyPage) yield ids.slice(from, from + LIMITS.historyPage);
}

const named = (ids: readonly string[]) => ({ _id: { $in: ids.map((id) => new ObjectId(id)) } });

/**
 * Whether all rules that have a state still select the object, with the conditions that the states are of, and all rules about silence
 * have one.
 */
function areCurrent(set: RuleSet, states: ReadonlyMap<string, HeldState> | undefined): boolean {
  for (const [ruleId, { key }] of states ?? []) if (set.find(ruleId)?.key !== key) return false;
  return set.rules.every(({ id, compiled }) => compiled.silentMs === null || states?.has(id) === true);
}
