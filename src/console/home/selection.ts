/** Which objects the list shows, in which order, and which one is selected. */
import { computed, signal } from '@preact/signals';
import { fold } from '../../core/fold.js';
import { keyOf, labelsOf, ordered } from '../state/by-name.js';
import { type FleetObject, objectRevision, objects, stateRevision } from '../state/fleet.js';
import { isLost } from '../state/live.js';
import { groupsBelow, namedOf } from '../state/references.js';

export type Filter = 'all' | 'online' | 'offline';
export const FILTERS: readonly Filter[] = ['all', 'online', 'offline'];

export const search = signal('');
export const filter = signal<Filter>('all');
/** Only objects of this group and those below it, of this model, with this label. */
export interface Narrowed {
  readonly group: string | null;
  readonly model: string | null;
  readonly label: string | null;
}
export const narrowed = signal<Narrowed>({ group: null, model: null, label: null });
/** The middle of the map and its zoom: `latitude,longitude,zoom`. */
export const place = signal<string | null>(null);
export const selectedId = signal<string | null>(null);

const inScope = computed(() => {
  const { group, model, label } = narrowed.value;
  if (group === null && model === null && label === null) return ordered.value;
  const groups = group === null ? null : groupsBelow(group, namedOf('groups'));
  return ordered.value.filter(
    (object) =>
      (groups === null || groups.has(object.group)) &&
      (model === null || object.model === model) &&
      (label === null || labelsOf(object).includes(label)),
  );
});

/** Whether some objects are left out, by whatever choice. */
export const isFiltered = computed(
  () => search.value !== '' || filter.value !== 'all' || Object.values(narrowed.value).some((one) => one !== null),
);

/** For every key of the search, which goes through all of them. */
const texts = computed(() => inScope.value.map((object) => keyOf(object).search));

const found = computed(() => {
  const wanted = fold(search.value.trim());
  if (wanted === '') return inScope.value;
  const all = texts.value;
  return inScope.value.filter((_, index) => all[index]?.includes(wanted));
});

export const isOnline = (object: FleetObject): boolean => object.state?.online === true;

/** How an object is shown. Whether one is online is not known without a connection. */
export type Presence = 'online' | 'unknown' | 'offline';

export function presenceOf(object: FleetObject): Presence {
  if (!isOnline(object)) return 'offline';
  return isLost.value ? 'unknown' : 'online';
}

export const visible = computed(() => {
  if (filter.value === 'all') return found.value;
  stateRevision.value;
  const wanted = filter.value === 'online';
  return found.value.filter(({ _id }) => {
    const object = objects.get(_id);
    return object !== undefined && isOnline(object) === wanted;
  });
});

export const counts = computed(() => {
  stateRevision.value;
  objectRevision.value;
  let online = 0;
  const all = inScope.value;
  for (const { _id } of all) {
    const object = objects.get(_id);
    if (object !== undefined && isOnline(object)) online++;
  }
  return { all: all.length, online, offline: all.length - online };
});
