/** All objects by name, and what else of them is compared by every list: the text that is searched, and labels. */
import { computed } from '@preact/signals';
import { fold } from '../../core/fold.js';
import { type FleetObject, loading, objectRevision, objects } from './fleet.js';

/** Until everything is loaded, more than this many objects stay in the order in which they come. */
const SORTED_WHILE_LOADING = 500;
const keys = new WeakMap<FleetObject, { sort: string; search: string }>();

/** Plain text comparison of these keys is fifty times faster than a collator, and has `truck 2` before `truck 10`. */
export function keyOf(object: FleetObject): { sort: string; search: string } {
  const known = keys.get(object);
  if (known !== undefined) return known;
  const name = fold(object.name);
  const key = {
    sort: toSortKey(name),
    search: `${name}\n${fold(object.id)}`,
  };
  keys.set(object, key);
  return key;
}

const toSortKey = (folded: string): string => folded.replace(/\d+/g, (digits) => digits.padStart(10, '0'));

/** The same of any text. */
export const sortKeyOf = (text: string): string => toSortKey(fold(text));

/** All objects, by name. */
export const ordered = computed(() => {
  objectRevision.value;
  const all = [...objects.values()];
  if (loading.value !== 'complete' && all.length > SORTED_WHILE_LOADING) return all;
  const keyed = all.map((object) => ({ object, key: keyOf(object).sort }));
  return keyed.sort((a, b) => (a.key < b.key ? -1 : 1)).map(({ object }) => object);
});

export const labelsOf = ({ labels }: FleetObject): readonly string[] =>
  Array.isArray(labels) ? labels.filter((one) => typeof one === 'string') : [];

const byOwnId = computed(() => {
  objectRevision.value;
  return new Map([...objects.values()].map((object) => [object.id, object]));
});

/** By `_id` or `id`. */
export const findObject = (key: string): FleetObject | undefined => objects.get(key) ?? byOwnId.value.get(key);
