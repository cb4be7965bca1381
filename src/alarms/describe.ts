/** What an alarm says of its cause: the parts of the condition in words, with what each read and since when. Pure. */
import { isObject, type Json, type JsonObject } from '../core/json.js';
import type { Operand, SingleCondition } from '../core/rule/condition.js';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../core/units.js';
import type { CompiledRule, Reading } from './evaluate.js';
import { operandOf } from './evaluate.js';

/** A part of the condition. */
export type Why = JsonObject & {
  /** Where it is in the rule, such as `when.all[0]`. */
  place: string;
  /** In words, such as `temperature > 8`. */
  condition: string;
  holds: boolean | null;
  value: Json;
  since: number | null;
};

export function toWhy(
  { singles, whenCount, fenceNames }: CompiledRule,
  readings: readonly Reading[],
  object: JsonObject,
): Why[] {
  return singles.slice(0, whenCount).map(({ condition }, index) => {
    const { truth, value, sinceMs } = readings[index] as Reading;
    return {
      place: condition.place,
      condition: toWords(condition, object, fenceNames),
      holds: truth,
      value,
      since: truth === null ? null : sinceMs,
    };
  });
}

/** What the condition read, by parameter. */
export function toValues({ singles, whenCount }: CompiledRule, readings: readonly Reading[]): JsonObject {
  const values: JsonObject = {};
  for (const [index, { condition }] of singles.slice(0, whenCount).entries()) {
    const { truth, value } = readings[index] as Reading;
    if (truth === null) continue;
    if (condition.kind === 'param') setAt(values, condition.path, value);
    else if (condition.kind === 'expr') Object.assign(values, value);
    else values[condition.kind] = value;
  }
  return values;
}

function setAt(values: JsonObject, [name, ...rest]: readonly string[], value: Json): void {
  if (name === undefined) return;
  if (rest.length === 0) {
    values[name] = value;
    return;
  }
  const present = values[name];
  const inner = isObject(present) ? present : {};
  values[name] = inner;
  setAt(inner, rest, value);
}

const FENCE_WORDS = { inside: 'inside', outside: 'outside', enter: 'entered', exit: 'left' } as const;

/** As a rule writes it: in the largest unit that it is a whole number of. */
function formatDuration(ms: number): string {
  const [name, unitMs] = UNITS.find(([, oneMs]) => ms % oneMs === 0) ?? ['s', SECOND_MS];
  return `${ms / unitMs} ${name}`;
}

const UNITS = [
  ['h', HOUR_MS],
  ['min', MINUTE_MS],
] as const;

type Names = ReadonlyMap<string, string>;

const NO_NAMES: Names = new Map();
const MOST_NAMES = 3;

/** `fenceNames`: of geofences, by `_id`. */
export function toWords(condition: SingleCondition, object: JsonObject, fenceNames = NO_NAMES): string {
  switch (condition.kind) {
    case 'param': {
      const wanted = condition.operands.map((operand) => toText(operand, object)).join(' and ');
      return `${condition.path.join('.')} ${condition.op}${wanted === '' ? '' : ` ${wanted}`}`;
    }
    case 'geofence':
      return `${FENCE_WORDS[condition.test]} ${toFences(condition.ids, fenceNames)}`;
    case 'silent':
      return `silent for ${formatDuration(condition.afterMs)}`;
    case 'online':
      return condition.isOnline ? 'online' : 'offline';
    default:
      return condition.expression.text;
  }
}

/** `"Yard"`, `"Yard", "Depot" or another geofence`; without names, `a geofence`. */
function toFences(ids: readonly string[], fenceNames: Names): string {
  const named = ids.map((id) => fenceNames.get(id) ?? '').filter((name) => name !== '');
  if (named.length === 0) return ids.length === 1 ? 'a geofence' : 'geofences';
  const shown = named.slice(0, MOST_NAMES).map((name) => `"${name}"`);
  const more = ids.length - shown.length;
  const rest = more === 1 ? 'another geofence' : `${more} other geofences`;
  return more === 0 ? shown.join(', ') : `${shown.join(', ')} or ${rest}`;
}

function toText(operand: Operand, object: JsonObject): string {
  const value = JSON.stringify(operandOf(operand, object));
  return 'config' in operand ? `${value} (config.${operand.config.join('.')})` : value;
}
