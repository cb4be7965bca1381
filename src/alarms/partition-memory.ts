/** What the owner of a partition remembers of it: states of rules, and the packets of objects. Loaded from what is stored. */
import { clock } from '../platform/clock.js';
import type { WaitingStep } from './escalation.js';
import type { RuleState } from './machine.js';
import type { EvaluatedTo, ObjectMemory } from './packet-reader.js';
import type { StoredRow } from './states.js';

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
  /** Instants, in slots, at which time alone may change states: of each object the first one, after which the next one is looked for. */
  readonly due: Map<number, Set<string>>;
  /** The slot of each object that has one. */
  readonly slots: Map<string, number>;
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
    changedRules: new Map(),
    refilledToMs: -Infinity,
    isLoaded: false,
    isReconciled: false,
    due: new Map(),
    slots: new Map(),
    takenSlot: Math.floor(clock.now() / SLOT_MS),
  };
}

/** Adds what is stored. */
export function fillMemory(memory: PartitionMemory, rows: readonly StoredRow[]): void {
  for (const row of rows) {
    if (row.kind === 'refilled') memory.refilledToMs = Math.max(memory.refilledToMs, row.toMs);
    else if (row.kind === 'evaluated') memory.evaluated.set(row.objectId, row.to);
    else {
      const { objectId, ruleId, key, state, waiting } = row.stored;
      setState(memory, objectId, ruleId, { key, state, waiting });
    }
  }
}

export function setState(memory: PartitionMemory, objectId: string, ruleId: string, held: HeldState | null): void {
  const ofObject = memory.states.get(objectId);
  if (held === null) {
    ofObject?.delete(ruleId);
    if (ofObject?.size === 0) memory.states.delete(objectId);
  } else if (ofObject === undefined) memory.states.set(objectId, new Map([[ruleId, held]]));
  else ofObject.set(ruleId, held);
}

/** The objects that have a state of the rule. Found when a rule has changed: an index of them would take more memory than it saves time. */
export function objectsWithState({ states }: PartitionMemory, ruleId: string): string[] {
  const found: string[] = [];
  for (const [objectId, ofObject] of states) if (ofObject.has(ruleId)) found.push(objectId);
  return found;
}

/** `dueMs` by the service's clock. A slot later: packets that came before have been stored by then. */
export function schedule(memory: PartitionMemory, objectId: string, dueMs: number): void {
  const slot = Math.max(Math.ceil(dueMs / SLOT_MS) + 1, memory.takenSlot + 1);
  const present = memory.slots.get(objectId);
  if (present !== undefined && present <= slot) return;
  unschedule(memory, objectId);
  memory.slots.set(objectId, slot);
  const same = memory.due.get(slot);
  if (same === undefined) memory.due.set(slot, new Set([objectId]));
  else same.add(objectId);
}

function unschedule({ slots, due }: PartitionMemory, objectId: string): void {
  const slot = slots.get(objectId);
  if (slot === undefined) return;
  slots.delete(objectId);
  const same = due.get(slot);
  same?.delete(objectId);
  if (same?.size === 0) due.delete(slot);
}

/** The objects whose instants have come; these are forgotten. */
export function takeDue(memory: PartitionMemory, nowMs: number): string[] {
  const found: string[] = [];
  const last = Math.floor(nowMs / SLOT_MS);
  for (; memory.takenSlot < last; memory.takenSlot++) {
    const slot = memory.takenSlot + 1;
    for (const id of memory.due.get(slot) ?? []) {
      found.push(id);
      memory.slots.delete(id);
    }
    memory.due.delete(slot);
  }
  return found;
}

/** Forgets an object that is gone: objects that come and go would fill the memory. */
export function forgetObject(memory: PartitionMemory, objectId: string): void {
  for (const known of [memory.states, memory.objects, memory.evaluated]) known.delete(objectId);
  unschedule(memory, objectId);
}

/** How much is remembered: entries of all kinds. */
export function countRemembered({ states, objects, evaluated, waiting, slots }: PartitionMemory): number {
  return [states, objects, evaluated, waiting, slots].reduce((sum, { size }) => sum + size, 0);
}
