/** Sensor Measurement Lists in JSON (RFC 8428): records are resolved with their base fields; those of one time become one packet. */
import { badRequest } from '../../core/errors.js';
import { isObject, type Json, type JsonObject } from '../../core/json.js';
import { LIMITS } from '../../core/limits.js';
import {
  asObject,
  fromMetresPerSecond,
  type Item,
  identifiers,
  parseBody,
  type Readout,
  type SourceKind,
  type SourceRequest,
  toList,
  toNumber,
} from './kind.js';

/** What a name and its base name may have: a device and a parameter. Each record repeats its base name. */
const NAME_CHARACTERS = LIMITS.idCharacters + LIMITS.keyCharacters;

/** Times below 2^28 s are relative to now (RFC 8428, 4.5.3). */
const RELATIVE_S = 2 ** 28;

/** The parameters of records without a name, by their unit. */
const NAMES: ReadonlyMap<string, string> = new Map([
  ['lat', 'lat'],
  ['lon', 'lon'],
  ['m/s', 'speed'],
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

/** The labels whose values are texts (RFC 8428, 4.1 and 4.2). */
const TEXTS = ['bn', 'n', 'u', 'bu'];

const textOf = (value: Json | undefined): string | undefined => (typeof value === 'string' ? value : undefined);

const isRecord = (value: unknown): value is JsonObject =>
  isObject(value) && ['n', 'bn', 'v', 'vs', 'vb', 'vd'].filter((label) => label in value).length >= 2;

const matches = (body: unknown): boolean => Array.isArray(body) && isRecord(body[0]);

/** RFC 8428, and with the units of RFC 8798 (RFC 9100). What has another version may mean something else (RFC 8428, 4.4). */
const VERSION = 10;
const VERSIONS_ABOVE: ReadonlySet<unknown> = new Set([26]);

interface Base {
  readonly name: string;
  readonly timeS: number;
  readonly unit: string;
  readonly value: number;
  /** Undefined where no record has one yet. */
  readonly sum: number | undefined;
}

const NO_BASE: Base = { name: '', timeS: 0, unit: '', value: 0, sum: undefined };

function toBase(before: Base, record: JsonObject): Base {
  return {
    name: textOf(record.bn) ?? before.name,
    timeS: toNumber(record.bt) ?? before.timeS,
    unit: textOf(record.bu) ?? before.unit,
    value: toNumber(record.bv) ?? before.value,
    sum: toNumber(record.bs) ?? before.sum,
  };
}

/** The device and the parameter that a name stands for. A name of its own can be a device's (RFC 9039) with a parameter behind it. */
function splitName(base: string, name: string): { readonly device: string; readonly parameter: string } {
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

function addRecord(packet: JsonObject, record: JsonObject, base: Base, given: string): void {
  const unit = textOf(record.u) ?? base.unit;
  const name = given === '' ? (NAMES.get(unit) ?? 'value') : given;
  const value = valueIn(record, base);
  const sum = sumIn(record, base);
  if (value !== undefined)
    packet[name] = name === 'speed' && unit === 'm/s' ? (fromMetresPerSecond(value) ?? null) : value;
  if (sum !== undefined) packet[`${name}Sum`] = sum;
}

function explainRecord(record: unknown): string | null {
  if (!isObject(record)) return 'expected an object';
  const unknown = Object.keys(record).find((label) => label.endsWith('_'));
  if (unknown !== undefined) return `unknown field ${unknown.slice(0, LIMITS.keyCharacters)}`;
  if (record.v !== undefined && record.v !== null && toNumber(record.v) === undefined) return 'v: expected a number';
  const other = TEXTS.find((label) => typeof (record[label] ?? '') !== 'string');
  if (other !== undefined) return `${other}: expected text`;
  const long = TEXTS.find((label) => (textOf(record[label]) ?? '').length > NAME_CHARACTERS);
  return long === undefined ? null : `${long}: more than ${NAME_CHARACTERS} characters`;
}

function read(request: SourceRequest): Readout {
  const records = toList(parseBody(request));
  if (!matches(records)) throw badRequest('the body: expected a list of SenML records (RFC 8428)');
  const version = records.map((record) => asObject(record).bver).find((one) => (toNumber(one) ?? VERSION) > VERSION);
  if (version !== undefined && !VERSIONS_ABOVE.has(version))
    throw badRequest('bver: a version of SenML that is not known');
  const packets = new Map<string, { readonly devices: string[]; readonly packet: JsonObject }>();
  const faults: Item[] = [];
  let base = NO_BASE;
  for (const [index, given] of records.entries()) {
    const fault = explainRecord(given);
    if (fault !== null) {
      faults.push({ reason: `record ${index}: ${fault}` });
      continue;
    }
    const record = given as JsonObject;
    base = toBase(base, record);
    const { device, parameter } = splitName(base.name, textOf(record.n) ?? '');
    const timeS = base.timeS + (toNumber(record.t) ?? 0);
    const key = `${device}\n${timeS}`;
    const short = /[^:/]+$/.exec(device)?.[0];
    const same = packets.get(key) ?? { devices: identifiers(device, short), packet: toTimed(timeS, request.nowMs) };
    addRecord(same.packet, record, base, parameter);
    packets.set(key, same);
  }
  return { items: [...packets.values(), ...faults], answer: null, resends: false };
}

/** A packet without a time has that of its arrival. */
function toTimed(timeS: number, nowMs: number): JsonObject {
  if (timeS === 0) return {};
  // Seconds as doubles have microseconds, in which binary fractions show.
  const ms = Math.floor(Math.round(timeS * 1_000_000) / 1_000);
  return { time: timeS < RELATIVE_S ? nowMs + ms : ms };
}

export const senml: SourceKind = { read, matches };
