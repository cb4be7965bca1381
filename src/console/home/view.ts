/** How the first page shows objects: on a map or as tiles beside their list, or in a table. */
import { computed, signal } from '@preact/signals';
import { loading, objectRevision, objects } from '../state/fleet.js';
import { placeOf } from '../state/places.js';
import { countedMs } from './selection.js';

export const VIEWS = ['map', 'tiles', 'table'] as const;
export type View = (typeof VIEWS)[number];

/** What the address asks for; null for what suits the objects. */
export const view = signal<View | null>(null);
/** The chosen values and columns, as the address has them; null for the usual ones. */
export const columns = signal<string | null>(null);
/** The column by which the table is ordered, `-name` for the other direction; null for the order of the list. */
export const by = signal<string | null>(null);

/** Which objects send where they are. `none`: nobody sends anything yet. */
export const placing = computed<'all' | 'some' | 'nobody' | 'none'>(() => {
  objectRevision.value;
  countedMs.value;
  let hasPlaced = false;
  let hasPlaceless = false;
  for (const object of objects.values()) {
    if (object.state === undefined) continue;
    if (placeOf(object) === null) hasPlaceless = true;
    else hasPlaced = true;
    if (hasPlaced && hasPlaceless) return 'some';
  }
  if (hasPlaced) return 'all';
  return hasPlaceless ? 'nobody' : 'none';
});

/** A map of objects none of which says where it is would be empty. */
export const usualView = computed<View>(() =>
  placing.value === 'nobody' && loading.value === 'complete' ? 'tiles' : 'map',
);

export const shownView = computed<View>(() => view.value ?? usualView.value);

/** Whether a map would be worth its time: while objects are loaded, nobody knows whether one of them has a position. */
export const isMapWanted = computed(
  () =>
    placing.value === 'all' || placing.value === 'some' || loading.value === 'complete' || loading.value === 'failed',
);
