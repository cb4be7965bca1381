/** Which fields a change of an entity has changed, with their values before and after it: without secrets, and within bounds. */
import { isObject, type Json, type JsonObject } from './json.js';
import { LIMITS } from './limits.js';

export interface ChangedValues {
  /** The names of the changed fields. */
  readonly fields: readonly string[];
  /** The changed members of these fields, as far as they may be shown: nested as in the entity. */
  readonly before: JsonObject;
  readonly after: JsonObject;
}

/** Names of members whose values are never shown, wherever they are. */
const SECRET =
  /^pass$|passw|passphrase|passcode|secret|token|credential|auth|cookie|headers|private|psk|keys?$|pins?$/i;

/** What a role permits is no secret, though its field is called so. */
const isSecret = (path: readonly string[]): boolean =>
  path.join('.') !== 'credentials' && SECRET.test(path.at(-1) ?? '');

/** Compares two versions of the client's own fields of an entity. */
export function changedValues(before: JsonObject, after: JsonObject): ChangedValues {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const fields = names.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
  const budget = { bytes: LIMITS.auditValuesBytes };
  const pairs = fields.map((name) => [name, compare([name], before[name], after[name], budget)] as const);
  return { fields, before: sideOf(pairs, 'before'), after: sideOf(pairs, 'after') };
}

/** The two values of a member; one that is absent, or not shown, is undefined. */
interface Pair {
  readonly before?: Json | undefined;
  readonly after?: Json | undefined;
}

const HIDDEN: Pair = {};

function compare(
  path: readonly string[],
  before: Json | undefined,
  after: Json | undefined,
  budget: { bytes: number },
): Pair {
  if (isSecret(path) || JSON.stringify(before) === JSON.stringify(after)) return HIDDEN;
  const old = membersOf(before);
  const young = membersOf(after);
  if (old === null && young === null) return spend(path, { before: toShown(before), after: toShown(after) }, budget);
  const names = [...new Set([...(old?.keys() ?? []), ...(young?.keys() ?? [])])];
  const pairs = names.map(
    (name) => [name, compare([...path, name], old?.get(name), young?.get(name), budget)] as const,
  );
  // A value of another kind, such as a number in place of an object, stands for itself.
  const plain = spend(
    path,
    { before: old === null ? toShown(before) : undefined, after: young === null ? toShown(after) : undefined },
    budget,
  );
  return {
    before: old === null ? plain.before : orNothing(sideOf(pairs, 'before')),
    after: young === null ? plain.after : orNothing(sideOf(pairs, 'after')),
  };
}

const orNothing = (side: JsonObject): JsonObject | undefined => (Object.keys(side).length === 0 ? undefined : side);

const sideOf = (pairs: readonly (readonly [string, Pair])[], side: keyof Pair): JsonObject =>
  Object.fromEntries(pairs.flatMap(([name, pair]) => (pair[side] === undefined ? [] : [[name, pair[side]]])));

/** Values beyond the budget are left out. */
function spend(path: readonly string[], pair: Pair, budget: { bytes: number }): Pair {
  const bytes = new TextEncoder().encode(path.join('.') + JSON.stringify(pair)).length;
  if (bytes > budget.bytes) return HIDDEN;
  budget.bytes -= bytes;
  return pair;
}

/** The members of an object, or of a list of objects by their `id` or their place; null for any other value, and for empty ones. */
function membersOf(value: Json | undefined): Map<string, Json> | null {
  if (Array.isArray(value)) {
    if (value.length === 0 || !value.every(isObject)) return null;
    const ids = value.map(({ id }) => id);
    const isNamed = ids.every((id) => typeof id === 'string' && NAME.test(id)) && new Set(ids).size === ids.length;
    return new Map(value.map((item, index) => [isNamed ? String(item.id) : String(index), item]));
  }
  return isObject(value) && Object.keys(value).length > 0 ? new Map(Object.entries(value)) : null;
}

const NAME = /^[A-Za-z0-9_:.-]{1,64}$/;

function toShown(value: Json | undefined): Json | undefined {
  if (value === undefined || value === null || typeof value === 'number' || typeof value === 'boolean') return value;
  const text = typeof value === 'string' ? withoutPath(value) : JSON.stringify(value);
  if (text.length <= LIMITS.auditValueCharacters) return typeof value === 'string' ? text : value;
  // Does not split a surrogate pair.
  return `${text.slice(0, LIMITS.auditValueCharacters).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** Of an address, whose path or query may be a key, only the server is shown. */
const withoutPath = (text: string): string =>
  text.replace(/\b([a-z][a-z0-9+.-]*:\/\/)(?:[^\s/?#@]*@)?([^\s/?#]*)[/?#]\S*/gi, '$1$2/…');
