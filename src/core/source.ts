/** Sources: the systems whose payloads become packets. Their kinds, and what their `map` says. Pure. */
import { badRequest } from './errors.js';
import { isObject, type Json, type JsonObject } from './json.js';
import { type JsonPath, parseJsonPath } from './json-path.js';
import { LIMITS } from './limits.js';
import { COMMANDED_KINDS, type SourceKindName } from './source-kinds.js';

/** A value of a payload: where it is, and how it becomes a value of ours: `value × factor + offset`. */
export interface MappedField {
  readonly path: JsonPath;
  readonly factor: number;
  readonly offset: number;
}

/** What the `map` of a source says. */
export interface SourceMap {
  /** Of the kind `json`: the fields of packets by name, `time` and `object` among them. */
  readonly fields: ReadonlyMap<string, MappedField>;
  /** Of the kind `telegraf`: the tag that names the device. */
  readonly objectTag: string;
  /** Of the kind `chirpstack`: whether events that are no measurements become packets. */
  readonly takesEvents: boolean;
  /** Of the kind `owntracks`: whether answers contain the commands for the device. */
  readonly givesCommands: boolean;
}

/** By unit: what makes km/h, m, °C and ms of it. */
const UNITS: Readonly<Record<string, { readonly factor: number; readonly offset?: number }>> = {
  'km/h': { factor: 1 },
  kn: { factor: 1.852 },
  'm/s': { factor: 3.6 },
  mph: { factor: 1.609344 },
  m: { factor: 1 },
  ft: { factor: 0.3048 },
  '°C': { factor: 1 },
  '°F': { factor: 5 / 9, offset: -160 / 9 },
  ms: { factor: 1 },
  s: { factor: 1_000 },
  us: { factor: 0.001 },
  ns: { factor: 0.000001 },
};

const MAPPED = 'expected a path such as $.dev.id or $.t[0].v, or {path, unit} or {path, factor, offset}';

/** What the map of other kinds than `json` may say. */
const KNOWN: Readonly<Partial<Record<SourceKindName, readonly string[]>>> = {
  telegraf: ['object'],
  chirpstack: ['events'],
  owntracks: ['commands'],
};

/** Checks what the fields of a source mean together. Throws a 400 that names the field. */
export function checkSource({ kind: given, map, commandUrl }: JsonObject): void {
  const kind = given as SourceKindName;
  parseSourceMap(kind, map);
  if (typeof commandUrl !== 'string') return;
  if (!COMMANDED_KINDS.includes(kind))
    throw badRequest(`commandUrl: only of the kinds ${[...COMMANDED_KINDS].join(', ')}`);
  const { username, password, search, hash } = new URL(commandUrl);
  if (username !== '' || password !== '') throw badRequest('commandUrl: without user name and password');
  if (search !== '' || hash !== '') throw badRequest('commandUrl: without a query');
}

/** Throws a 400 that names the field. */
export function parseSourceMap(kind: SourceKindName, map: Json | undefined): SourceMap {
  const given = map ?? {};
  if (!isObject(given)) throw badRequest('map: expected an object');
  const entries = Object.entries(given).filter(([, value]) => value !== null);
  const { object: objectTag = 'host', events = false, commands = false } = given;
  const known = KNOWN[kind] ?? [];
  const unknown = kind === 'json' ? undefined : entries.find(([name]) => !known.includes(name))?.[0];
  if (unknown !== undefined) {
    const meant = known.length === 0 ? 'has no map' : `has a map with ${known.join(', ')}`;
    throw badRequest(`map.${unknown}: the kind ${kind} ${meant}`);
  }
  if (entries.length > LIMITS.sourceMapFields) throw badRequest(`map: more than ${LIMITS.sourceMapFields} fields`);
  if (kind === 'telegraf' && typeof objectTag !== 'string') throw badRequest('map.object: expected the name of a tag');
  if (typeof events !== 'boolean' && kind === 'chirpstack') throw badRequest('map.events: expected true or false');
  if (typeof commands !== 'boolean' && kind === 'owntracks') throw badRequest('map.commands: expected true or false');
  const mapped = kind === 'json' ? entries : [];
  return {
    fields: new Map(mapped.map(([name, value]) => [name, parseMapped(`map.${name}`, value)])),
    objectTag: String(objectTag ?? 'host'),
    takesEvents: events === true,
    givesCommands: commands === true && kind === 'owntracks',
  };
}

function parseMapped(name: string, value: Json): MappedField {
  const {
    path: text,
    unit = null,
    factor = null,
    offset = null,
  } = isObject(value) ? value : ({ path: value } as JsonObject);
  const path = typeof text === 'string' ? parseJsonPath(text) : null;
  if (path === null) throw badRequest(`${name}: ${MAPPED}`);
  const known = typeof unit === 'string' && Object.hasOwn(UNITS, unit) ? UNITS[unit] : undefined;
  if (unit !== null && known === undefined) {
    throw badRequest(`${name}.unit: expected one of ${Object.keys(UNITS).join(', ')}`);
  }
  if (factor !== null && typeof factor !== 'number') throw badRequest(`${name}.factor: expected a number`);
  if (offset !== null && typeof offset !== 'number') throw badRequest(`${name}.offset: expected a number`);
  return { path, factor: factor ?? known?.factor ?? 1, offset: offset ?? known?.offset ?? 0 };
}

/** Applies the factor; removes the noise of binary fractions from the result. */
export function scale(value: number, { factor, offset }: Pick<MappedField, 'factor' | 'offset'>): number {
  return factor === 1 && offset === 0 ? value : Number((value * factor + offset).toPrecision(12));
}
