/** A rule over packets of the past: the alarms that it would have raised, and how near it came. The evaluator is that of live packets. Pure. */
import type { Json, JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { toValues, toWhy, toWords, type Why } from './describe.js';
import { type CompiledRule, operandOf, type Reading } from './evaluate.js';
import { type Effect, type Input, initialState, type MachineParts, nextDue, type RuleState, step } from './machine.js';
import { isDataPacket, newMemory, readPacket, receivedMsOf, remember } from './packet-reader.js';
import type { PastReport } from './past-presence.js';

export interface TestedAlarm {
  readonly raised: number;
  cleared: number | null;
  readonly packet: string | null;
  readonly values: JsonObject;
  readonly why: readonly Why[];
}

/** How near a condition came: how long it held at most, and the closest value. */
export interface Nearly {
  readonly place: string;
  readonly condition: string;
  /** The longest time that it held, since when, and how long it would have had to. */
  readonly heldMs: number;
  readonly since: number | null;
  readonly forMs: number;
  /** The value closest to what was wanted, and when; null where it cannot be said. */
  readonly closest: Json;
  readonly at: number | null;
}

export interface DryRun {
  /** The next packet, in the order of time. */
  add(packet: JsonObject): void;
  /** The end of the interval, and the present if it lasts until then: by the clock of the object, that may be earlier. */
  end(atMs: number, nowMs?: number): { alarms: readonly TestedAlarm[]; evaluated: number; nearly: readonly Nearly[] };
}

export interface DryRunOptions {
  readonly object: JsonObject;
  /** Since when silence counts; null where it only does after a packet. */
  readonly fromMs: number | null;
  /** Reports of presence by their instants; without them, they are read as they are added. */
  readonly reports?: readonly PastReport[];
}

export function createDryRun(rule: CompiledRule, { object, fromMs, reports }: DryRunOptions): DryRun {
  const memory = newMemory(rule.readsLast);
  const alarms: TestedAlarm[] = [];
  const nearness = createNearness(rule, object);
  const parts: MachineParts = { rule, toAlarmId: (begunBy) => begunBy };
  let state: RuleState = { ...initialState(rule), startedMs: rule.silentMs === null ? null : fromMs };
  let evaluated = 0;
  let packetId: string | null = null;
  const note = (effects: readonly Effect[]): void => {
    for (const effect of effects) addEffect({ rule, object, alarms, packetId }, effect);
  };
  const run = (input: Input): void => {
    for (let dueMs = nextDue(rule, state); dueMs !== null && dueMs < input.atMs; dueMs = nextDue(rule, state)) {
      apply({ kind: 'tick', atMs: dueMs });
    }
    apply(input);
  };
  const apply = (input: Input): void => {
    const next = step(parts, state, input);
    state = next.state;
    note(next.effects);
    nearness.note(state.readings, input.atMs);
  };
  const evaluate = (packet: JsonObject, atMs: number): void => {
    const read = readPacket(memory, packet, object);
    if (read === null) return;
    // The packet that completes an alarm is the one that is read; what time alone completes belongs to the one before.
    run({ kind: 'tick', atMs: atMs - 0.5 });
    packetId = String(packet._id);
    run({ kind: 'packet', atMs, packetId, read });
    remember(memory, read, receivedMsOf(packet));
    nearness.read(state.readings, atMs);
  };
  let next = 0;
  const report = (untilMs: number): void => {
    for (let one = reports?.[next]; one !== undefined && one.atMs < untilMs; one = reports?.[next]) {
      next++;
      evaluate(one.packet, one.atMs);
    }
  };
  return {
    add(packet) {
      evaluated++;
      if (reports !== undefined && !isDataPacket(packet)) return;
      report(packet.time as number);
      evaluate(packet, packet.time as number);
    },
    end(toMs, nowMs) {
      const atMs = nowMs === undefined ? toMs : Math.max(memory.dataMs, nowMs - memory.aheadMs);
      report(atMs);
      run({ kind: 'tick', atMs });
      return { alarms, evaluated, nearly: nearness.end(atMs) };
    },
  };
}

interface Noted {
  readonly rule: CompiledRule;
  readonly object: JsonObject;
  readonly alarms: TestedAlarm[];
  readonly packetId: string | null;
}

function addEffect({ rule, object, alarms, packetId }: Noted, effect: Effect): void {
  const last = alarms.at(-1);
  if (effect.kind === 'clear') {
    if (last !== undefined) last.cleared = effect.atMs;
    return;
  }
  if (alarms.length >= LIMITS.testedAlarms) return;
  const { readings, atMs } = effect;
  const values = toValues(rule, readings);
  alarms.push({ raised: atMs, cleared: null, packet: packetId, values, why: toWhy(rule, readings, object) });
}

interface Nearness {
  note(readings: readonly Reading[], atMs: number): void;
  /** After a packet. */
  read(readings: readonly Reading[], atMs: number): void;
  end(atMs: number): readonly Nearly[];
}

/** The whole of `when`, and each of its parts. */
function createNearness(rule: CompiledRule, object: JsonObject): Nearness {
  const { singles, whenCount, settings, fenceNames } = rule;
  const conditions = singles.slice(0, whenCount).map(({ condition }) => condition);
  const spans = [...conditions, null].map(() => ({
    since: null as number | null,
    heldMs: 0,
    best: null as number | null,
  }));
  const closest = conditions.map(() => ({ distance: Infinity, value: null as Json, at: null as number | null }));
  const extend = (span: (typeof spans)[number], holds: boolean, atMs: number): void => {
    if (span.since !== null && atMs - span.since >= span.heldMs) {
      span.heldMs = atMs - span.since;
      span.best = span.since;
    }
    if (!holds) span.since = null;
    else span.since ??= atMs;
  };
  const holds = (readings: readonly Reading[]): boolean[] => [
    ...conditions.map((_, index) => readings[index]?.truth === true),
    rule.when(readings) === true,
  ];
  const note = (readings: readonly Reading[], atMs: number): void => {
    for (const [index, one] of holds(readings).entries()) extend(spans[index] as (typeof spans)[number], one, atMs);
  };
  return {
    note,
    read(readings, atMs) {
      for (const [index, condition] of conditions.entries()) {
        const { value } = readings[index] as Reading;
        const near = closest[index] as (typeof closest)[number];
        const distance = distanceOf(condition, value, object);
        if (distance === null || distance >= near.distance) continue;
        near.distance = distance;
        near.value = value;
        near.at = atMs;
      }
    },
    end(atMs) {
      for (const span of spans) extend(span, false, atMs);
      const whole = spans.at(-1) as (typeof spans)[number];
      const toNearly = (span: typeof whole): Pick<Nearly, 'heldMs' | 'since' | 'forMs'> => ({
        heldMs: span.heldMs,
        since: span.best,
        forMs: settings.forMs,
      });
      const parts = conditions.map((condition, index): Nearly => {
        const { value, at } = closest[index] as (typeof closest)[number];
        const span = spans[index] as (typeof spans)[number];
        const words = toWords(condition, object, fenceNames);
        return { place: condition.place, condition: words, ...toNearly(span), closest: value, at };
      });
      if (parts.length === 1) return parts;
      const all: Nearly = { place: 'when', condition: 'when', ...toNearly(whole), closest: null, at: null };
      return [all, ...parts];
    },
  };
}

/** How far a value is from what a condition wants; null where that has no measure. */
function distanceOf(
  condition: CompiledRule['singles'][number]['condition'],
  value: Json,
  object: JsonObject,
): number | null {
  if (condition.kind !== 'param' || typeof value !== 'number') return null;
  const given = condition.operands.map((operand) => operandOf(operand, object));
  const [low, high] = given.length === 1 && Array.isArray(given[0]) ? given[0] : given;
  if (typeof low !== 'number') return null;
  switch (condition.op) {
    case '>':
    case '>=':
      return Math.max(0, low - value);
    case '<':
    case '<=':
      return Math.max(0, value - low);
    case '==':
      return Math.abs(value - low);
    case 'between':
      return typeof high === 'number' ? Math.max(0, low - value, value - high) : null;
    default:
      return null;
  }
}
