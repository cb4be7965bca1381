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
import type { RuleObject, RuleObjects } from './rule-objects.js';
import type { RuleRegistry } from './rule-registry.js';

export interface ReconcileParts {
  readonly database: Database;
  readonly registry: RuleRegistry;
  readonly objects: RuleObjects;
}

/** The objects of these partitions that are to be looked at again. Throws 503. */
export async function* findOutdated(
  parts: ReconcileParts,
  memories: ReadonlyMap<number, PartitionMemory>,
): AsyncGenerator<{ index: number; objectId: string; tenant: string }> {
  const turn = startTurnClock();
  for (const [index, memory] of memories) {
    const objectIds = [...memory.states.keys()];
    for (let from = 0; from < objectIds.length; from += LIMITS.historyPage) {
      const ids = objectIds.slice(from, from + LIMITS.historyPage);
      const found = await readObjects(parts, ids);
      for (const objectId of ids) {
        const object = found.get(objectId);
        const isCurrent = object !== undefined && areCurrent(object, memory.states.get(objectId));
        if (!isCurrent) yield { index, objectId, tenant: object?.tenant ?? '' };
        await turn.yieldIfLong();
      }
    }
    for await (const objectId of findGone(parts, memory)) yield { index, objectId, tenant: '' };
  }
  if (parts.registry.hasSilent()) yield* findUnheard(parts, memories);
}

async function readObjects({ database, objects }: ReconcileParts, ids: readonly string[]) {
  const named = { _id: { $in: ids.map((id) => new ObjectId(id)) } };
  const found = await mapDriverErrors(() => database.db.collection('objects').find(named).toArray());
  return new Map(found.map((document) => [String(document._id), objects.toObject(document)]));
}

/** The objects without a state that are remembered, and that are no more. */
async function* findGone({ database }: ReconcileParts, memory: PartitionMemory): AsyncGenerator<string> {
  const objectIds = [...memory.evaluated.keys(), ...memory.objects.keys()].filter((id) => !memory.states.has(id));
  for (let from = 0; from < objectIds.length; from += LIMITS.historyPage) {
    const ids = objectIds.slice(from, from + LIMITS.historyPage);
    const named = { _id: { $in: ids.map((id) => new ObjectId(id)) } };
    const find = () =>
      database.db
        .collection('objects')
        .find(named, { projection: { _id: 1 } })
        .toArray();
    const found = new Set((await mapDriverErrors(find)).map(({ _id }) => String(_id)));
    for (const id of ids) if (!found.has(id)) yield id;
  }
}

/** Whether all rules that have a state still select the object, with the conditions that the states are of. */
function areCurrent({ set }: RuleObject, states: ReadonlyMap<string, HeldState> | undefined): boolean {
  if (states === undefined) return true;
  const rules = new Map(set.rules.map((rule) => [rule.id, rule]));
  return [...states].every(([ruleId, { key }]) => rules.get(ruleId)?.key === key);
}

/** Objects without a state of a rule about silence, which begins with no packet. */
async function* findUnheard(
  { database, objects }: ReconcileParts,
  memories: ReadonlyMap<number, PartitionMemory>,
): AsyncGenerator<{ index: number; objectId: string; tenant: string }> {
  const turn = startTurnClock();
  const cursor = database.db.collection('objects').find({}, { batchSize: LIMITS.historyPage });
  for await (const document of cursor) {
    const index = partitionOf(String(document._id), LIMITS.partitions);
    const memory = memories.get(index);
    if (memory === undefined) continue;
    const { id, tenant, set } = objects.toObject(document);
    const states = memory.states.get(id);
    const isUnheard = set.rules.some((rule) => rule.compiled.silentMs !== null && states?.has(rule.id) !== true);
    if (isUnheard) yield { index, objectId: id, tenant };
    await turn.yieldIfLong();
  }
}
