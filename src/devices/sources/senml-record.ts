/** A record of a pack of SenML (RFC 8428): its base fields, its name, and what it measures. */
import { isObject, type Json, type JsonObject } from '../../core/json.js';
import { LIMITS } from '../../core/limits.js';
import { fromMetresPerSecond, toNumber } from './kind.js';

/** What a name and its base name may have: a device and a parameter. Each record repeats its base name. */
const NAME_CHARACTERS = LIMITS.idCharacters + LIMITS.keyCharacters;

/** The parameters of records without a name, by their unit. */
const NAMES: ReadonlyMap<string, string> = new Map([
  ['lat', 'lat'],
  ['lon', 'lon'],
  ['m/s', 'speed'],
  ['km/h', 'speed'],
  ['Cel', 'temperature'],
  ['%RH', 'humidity'],
  ['%EL', 'battery'],
  ['V', 'voltage'],
  ['A', 'current'],
  ['W', 'power'],
  ['J', 'energy'],
  ['Pa', 'pressure'],
  ['Hz', 'frequency'],
]);

/** The labels whose values are numbers or texts (RFC 8428, 4.1 and 4.2). */
const LABELS = ['bn', 'bt', 'bu', 'n', 'u', 't', 'v'];
const NUMBERS: ReadonlySet<string> = new Set(['bt', 't', 'v']);

/** Undefined for what is no text. */
export const textOf = (value: Json | undefined): string | undefined => (typeof value === 'string' ? value : undefined);

/** What the records so far have said for all later ones. */
export interface Base {
  readonly name: string;
  readonly timeS: number;
  readonly unit: string;
  readonly value: number;
  /** Undefined where no record has one yet. */
  readonly sum: number | undefined;
}

export const NO_BASE: Base = { name: '', timeS: 0, unit: '', value: 0, sum: undefined };

/** With the base fields of one more record. */
export function toBase(before: Base, record: JsonObject): Base {
  return {
    name: textOf(record.bn) ?? before.name,
    timeS: toNumber(record.bt) ?? before.timeS,
    unit: textOf(record.bu) ?? before.unit,
    value: toNumber(record.bv) ?? before.value,
    sum: toNumber(record.bs) ?? before.sum,
  };
}

/** The device and the parameter that a name stands for. A name of its own can be a device's (RFC 9039) with a parameter behind it. */
export function splitName(base: string, name: string): { readonly device: string; readonly parameter: string } {
  if (base !== '') return { device: base.replace(/[:/_.-]+$/, ''), parameter: name.replace(/^[:/_.-]+/, '') };
  const [, device = '', parameter = name] = /^(urn:dev:[a-z]+:[\dA-Za-z.-]+)(?:[:_/](.*))?$/.exec(name) ?? [];
  return { device, parameter: device === '' ? name : parameter === name ? '' : parameter };
}

function valueIn(record: JsonObject, { value }: Base): Json | undefined {
  const number = toNumber(record.v);
  if (number !== undefined) return value === 0 ? number : number + value;
  return record.vb ?? record.vs ?? record.vd;
}

/** Of a sum and a base sum, a missing one is 0; a record with a base sum needs no value (RFC 8428, 4.2). */
function sumIn(record: JsonObject, base: Base): number | undefined {
  const sum = toNumber(record.s);
  if (sum !== undefined) return sum + (base.sum ?? 0);
  return record.n !== undefined && valueIn(record, base) === undefined ? base.sum : undefined;
}

/** What a record measures; nothing for one with base fields only. */
export function measuredIn(record: JsonObject, base: Base, given: string): JsonObject {
  const unit = textOf(record.u) ?? base.unit;
  const name = given === '' ? (NAMES.get(unit) ?? 'value') : given;
  const value = valueIn(record, base);
  const sum = sumIn(record, base);
  const isMetresPerSecond = name === 'speed' && unit === 'm/s';
  // A speed below 0 is unknown.
  const known = isMetresPerSecond ? fromMetresPerSecond(value) : value;
  return {
    ...(known !== undefined && { [name]: known }),
    ...(sum !== undefined && { [`${name}Sum`]: sum }),
  };
}

/** Why a record cannot be read; null if it can. Base fields come first: all records after it depend on them. */
export function explainRecord(record: unknown): string | null {
  if (!isObject(record)) return 'expected an object';
  for (const label of LABELS) {
    const value = record[label] ?? '';
    if (NUMBERS.has(label)) {
      if (value !== '' && toNumber(value) === undefined) return `${label}: expected a number`;
    } else if (typeof value !== 'string') return `${label}: expected text`;
    else if (value.length > NAME_CHARACTERS) return `${label}: more than ${NAME_CHARACTERS} characters`;
  }
  const unknown = Object.keys(record).find((label) => label.endsWith('_'));
  return unknown === undefined ? null : `unknown field ${unknown.slice(0, LIMITS.keyCharacters)}`;
}

/** Whether such a reason is one of a base field, so that nothing after the record can be read. */
export const endsPack = (reason: string): boolean => reason.startsWith('b');
