/** What a rule has read when it was tried: with the names, the units and the states of the object's model. */
import { modelOf, type Shown, toShown } from '../home/values.js';
import type { Json } from '../state/api.js';
import type { FleetObject } from '../state/fleet.js';
import { isObject } from './draft.js';
import { partAt } from './parameters.js';
import type { Result } from './trial.js';
import { wordsOf } from './words.js';

export interface ReadWords {
  /** `Air > 8 °C`. */
  readonly condition: string;
  /** `7.5 °C`; empty where there is none. */
  readonly closest: string;
}

const UNKNOWN: readonly unknown[] = [undefined, null];

export function readWordsOf(near: Result['nearly'][number], rule: Json, { _id, model }: FleetObject): ReadWords {
  const part = partAt(rule, near.place);
  if (!isObject(part) || typeof part.param !== 'string') return { condition: wordsOf(part), closest: '' };
  const { param, op, value } = part;
  const show = (one: unknown): string => withUnit(toShown(param, one, modelOf(_id, model)));
  const { label } = toShown(param, 0, modelOf(_id, model));
  // What it is for this object, says the server.
  const isFixed = !JSON.stringify(value ?? null).includes('{');
  const wanted = isFixed ? ` ${[op, ...[value ?? []].flat().map(show)].join(' ')}` : near.condition.slice(param.length);
  return { condition: label + wanted, closest: UNKNOWN.includes(near.closest) ? '' : show(near.closest) };
}

const withUnit = ({ text, unit }: Shown): string => (unit === '' ? text : `${text} ${unit}`);
