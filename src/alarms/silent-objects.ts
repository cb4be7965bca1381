/** The objects that a rule about silence selects: without a packet, nothing else would lead to them. */
import { ObjectId } from 'mongodb';
import type { TurnClock } from '../live/turn-clock.js';
import type { ActiveRule } from './active-rule.js';
import type { RuleObjects } from './rule-objects.js';

export interface SelectionParts {
  readonly objects: RuleObjects;
  readonly turn: TurnClock;
}

/** By the rule as it was read: all partitions need them. */
const selected = new WeakMap<ActiveRule, Promise<readonly string[]>>();

export function findSelected(parts: SelectionParts, rule: ActiveRule): Promise<readonly string[]> {
  const finding = selected.get(rule) ?? listSelected(parts, rule);
  selected.set(rule, finding);
  finding.catch(() => selected.delete(rule));
  return finding;
}

async function listSelected({ objects, turn }: SelectionParts, { id, stored, reach }: ActiveRule): Promise<string[]> {
  const owner = new ObjectId(stored.ownerId);
  const isVisible = { $or: [{ branch: new ObjectId(stored.groupId) }, { owner }, { access: owner }] };
  const isNamed = { _id: { $in: [...(reach.objects ?? [])].map((one) => new ObjectId(one)) } };
  const filter = { $and: [isVisible, ...(reach.objects === null ? [] : [isNamed])] };
  const found: string[] = [];
  for await (const matched of objects.match(filter)) {
    for (const object of matched) if (object.set.find(id) !== undefined) found.push(object.id);
    await turn.yieldIfLong();
  }
  return found;
}
