/** What a packet makes of the state of a rule for an object. Pure. */
import type { JsonObject } from '../core/json.js';
import type { Steps } from '../core/rule/metering.js';
import { toPastId } from '../webhooks/refill.js';
import type { ActiveRule } from './active-rule.js';
import type { PacketInput } from './evaluate.js';
import { type Effect, initialState, type MachineParts, type RuleState, step } from './machine.js';
import type { ObjectMemory } from './packet-reader.js';
import type { CausedEffect } from './round-states.js';
import type { RuleObject } from './rule-objects.js';

export interface Evaluated {
  readonly rule: ActiveRule;
  readonly object: RuleObject;
  readonly memory: ObjectMemory;
}

export interface Arrived {
  /** Null for a data packet that is older than another one. */
  readonly read: PacketInput | null;
  readonly packet: JsonObject;
  readonly receivedMs: number;
  /** Those that its expressions may take. */
  readonly steps: Steps;
}

/** The machine of a rule for an object. The `_id` of an alarm follows from what began it. */
export const partsOf = ({ rule, object }: Pick<Evaluated, 'rule' | 'object'>): MachineParts => ({
  rule: rule.compiled,
  toAlarmId(begunBy) {
    const secondsS = /^\d{1,13}(\.\d+)?$/.test(begunBy)
      ? Number(begunBy) / 1_000
      : Number.parseInt(begunBy.slice(0, 8), 16);
    return toPastId(Math.max(0, Math.floor(secondsS)), ['alarm', rule.id, object.id, begunBy]);
  },
});

/** The instant of a packet by the object's clock. A report of presence has its time from the service's clock. */
function toObjectMs(
  { dataMs, aheadMs }: ObjectMemory,
  { read, packet, receivedMs }: Pick<Arrived, 'read' | 'packet' | 'receivedMs'>,
): number {
  if (read?.isData !== false || dataMs === -Infinity) return packet.time as number;
  return Math.max(dataMs, receivedMs - aheadMs);
}

/** Effects with what completed them: a packet, or what is remembered of those so far. */
export const causedBy = (
  { packetId, position }: Pick<ObjectMemory, 'packetId' | 'position'>,
  effects: readonly Effect[],
): CausedEffect[] => effects.map((effect) => ({ effect, packetId, position }));

/** What a packet makes of a state. What time alone does before it belongs to the packet before it. */
export function evaluatePacket(
  evaluated: Evaluated,
  held: RuleState | undefined,
  { read, packet, receivedMs, steps }: Arrived,
): { before: RuleState; after: RuleState; effects: readonly CausedEffect[] } {
  const { rule, memory } = evaluated;
  const parts = partsOf(evaluated);
  const before = held ?? initialState(rule.compiled);
  if (read === null) {
    const { state, effects } = step(parts, before, { kind: 'heard', atMs: receivedMs - memory.aheadMs });
    return { before, after: state, effects: causedBy(memory, effects) };
  }
  const atMs = toObjectMs(memory, { read, packet, receivedMs });
  const packetId = String(packet._id);
  const early =
    before.phase === 'idle' && before.heardMs === null && before.startedMs === null
      ? null
      : step(parts, before, { kind: 'tick', atMs: atMs - 0.5 });
  const { state, effects } = step(parts, early?.state ?? before, { kind: 'packet', atMs, packetId, read, steps });
  if (effects.length === 0 && (early === null || early.effects.length === 0))
    return { before, after: state, effects: [] };
  const position = read.fix === null ? memory.position : { lat: read.fix.lat, lon: read.fix.lon };
  const caused = [...causedBy(memory, early?.effects ?? []), ...causedBy({ packetId, position }, effects)];
  return { before, after: state, effects: caused };
}
