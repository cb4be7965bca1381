/** What the owner of a partition remembers of it: states of rules, and the packets of objects. Loaded from what is stored. */
import { clock } from '../platform/clock.js';
import type { WaitingStep } from './escalation.js';
import type { RuleState } from './machine.js';
import type { EvaluatedTo, ObjectMemory } from './packet-reader.js';
import type { StoredPartition } from './states.js';

/** A state with the conditions to which its readings belong. */
export interface HeldState {
  readonly key: string;
  readonly state: RuleState;
  /** Of the alarm that is raised; null for nothing. */
  readonly waiting: readonly WaitingStep[] | null;
}

export interface PartitionMemory {
  /** By object, then by rule. */
  readonly states: Map<string, Map<string, HeldState>>;
  readonly objects: Map<string, ObjectMemory>;
  /** How far objects were evaluated of which no packet has come since. */
  readonly evaluated: Map<string, EvaluatedTo>;
  /** The last task of each object that waits. */
  readonly waiting: Map<string, object>;
  /** The objects that have a state of each rule. */
  readonly objectsOf: Map<string, Set<string>>;
  /** Rules that have changed, whose states are not looked at yet. */
  readonly changedRules: Map<string, string>;
  /**
   * Packets that came up to then, by the service's clock, may come again: a refill has read them, and changes tell of some of them later.
   */
  refilledToMs: number;
  /** Whether what is stored was read. */
  isLoaded: boolean;
  /** Whether that is compared with the objects and rules that there are, or is being compared. */
  isReconciled: boolean;
  /** Instants, in slots, at which time alone may change states. */
  readonly due: Map<number, Set<string>>;
  /** The last slot that was taken. */
  takenSlot: number;
}

export const SLOT_MS = 250;

export function createPartitionMemory(): PartitionMemory {
  return {
    states: new Map(),
    objects: new Map(),
    evaluated: new Map(),
    waiting: new Map(),
    objectsOf: new Map(),
    changedRules: new Map(),
    refilledToMs: -Infinity,
    isLoaded: false,
    isReconciled: false,
    due: new Map(),
    takenSlot: Math.floor(clock.now() / SLOT_MS),
  };
}

export function fillMemory(memory: PartitionMemory, { states, evaluated, refilledToMs }: StoredPartition): void {
  memory.refilledToMs = Math.max(memory.refilledToMs, refilledToMs);
  for (const [objectId, to] of evaluated) memory.evaluated.set(objectId, to);
  for (const { objectId, ruleId, key, state, waiting } of states) {
    setState(memory, objectId, ruleId, { key, state, waiting });
  }
  memory.isLoaded = true;
}

export function setState(memory: PartitionMemory, objectId: string, ruleId: string, held: HeldState | null): void {
  if (held === null) {
    dropFrom(memory.states, objectId, ruleId);
    dropFrom(memory.objectsOf, ruleId, objectId);
    return;
  }
  const ofObject = memory.states.get(objectId);
  if (ofObject === undefined) memory.states.set(objectId, new Map([[ruleId, held]]));
  else ofObject.set(ruleId, held);
  const ofRule = memory.objectsOf.get(ruleId);
  if (ofRule === undefined) memory.objectsOf.set(ruleId, new Set([objectId]));
  else ofRule.add(objectId);
}

interface Items {
  readonly size: number;
  delete(key: string): boolean;
}

function dropFrom(all: Map<string, Items>, key: string, item: string): void {
  const items = all.get(key);
  items?.delete(item);
  if (items?.size === 0) all.delete(key);
}

/** `dueMs` by the service's clock. A slot later: packets that came before have been stored by then. */
export function schedule(memory: PartitionMemory, objectId: string, dueMs: number): void {
  const slot = Math.max(Math.ceil(dueMs / SLOT_MS) + 1, memory.takenSlot + 1);
  const same = memory.due.get(slot);
  if (same === undefined) memory.due.set(slot, new Set([objectId]));
  else same.add(objectId);
}

/** The objects whose instants have come; they are forgotten. */
export function takeDue(memory: PartitionMemory, nowMs: number): string[] {
  const found = new Set<string>();
  const last = Math.floor(nowMs / SLOT_MS);
  for (; memory.takenSlot < last; memory.takenSlot++) {
    const slot = memory.takenSlot + 1;
    for (const id of memory.due.get(slot) ?? []) found.add(id);
    memory.due.delete(slot);
  }
  return [...found];
}
