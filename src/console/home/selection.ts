/** Which objects the list shows, in which order, and which one is selected. */
import { computed, signal } from '@preact/signals';
import { fold } from '../../core/fold.js';
import { type Activity, activityOf, isOnline } from '../state/activity.js';
import { worstByObject } from '../state/alarms.js';
import { keyOf, labelsOf, ordered } from '../state/by-name.js';
import { nowMs } from '../state/clock.js';
import { objectRevision, objects } from '../state/fleet.js';
import { groupsBelow, namedOf } from '../state/references.js';
import { ORDERS, type Order, toOrder } from './order.js';

/** The first one is that of an address without one. */
export const FILTERS = ['all', 'critical', 'warning', 'offline', 'silent', 'moving', 'standing', 'online'] as const;
export type Filter = (typeof FILTERS)[number];

export const search = signal('');
export const filter = signal<Filter>(FILTERS[0]);
export const order = signal<Order>(ORDERS[0]);
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

/** To go through more objects than this takes too long to do it each second. */
const MANY = 10_000;
const MANY_MS = 5_000;
const FEW_MS = 1_000;

/** The time of the last count: what objects do changes with their packets, and with the time that passes without one. */
export const countedMs = computed(() => {
  const everyMs = objects.size > MANY ? MANY_MS : FEW_MS;
  return Math.floor(nowMs.value / everyMs) * everyMs;
});

/** What the filters ask of one object. */
interface Seen {
  readonly activity: Activity;
  readonly isOnline: boolean;
  readonly severity: string | undefined;
}

function seen(id: string, atMs: number): Seen | null {
  const object = objects.get(id);
  if (object === undefined) return null;
  return {
    activity: activityOf(object, atMs),
    isOnline: isOnline(object),
    severity: worstByObject.value.get(id)?.severity,
  };
}

function isMatch(wanted: Filter, { activity, isOnline, severity }: Seen): boolean {
  if (wanted === 'all') return true;
  if (wanted === 'online' || wanted === 'offline') return isOnline === (wanted === 'online');
  return wanted === 'critical' || wanted === 'warning' ? severity === wanted : activity === wanted;
}

const matched = computed(() => {
  const wanted = filter.value;
  if (wanted === 'all') return found.value;
  const atMs = countedMs.value;
  return found.value.filter(({ _id }) => {
    const one = seen(_id, atMs);
    return one !== null && isMatch(wanted, one);
  });
});

export const visible = computed(() => toOrder(order.value, matched.value));

export type Counts = Readonly<Record<Filter, number>>;

/** How many objects each filter shows. */
export const counts = computed<Counts>(() => {
  objectRevision.value;
  const atMs = countedMs.value;
  const all = Object.fromEntries(FILTERS.map((one) => [one, 0])) as Record<Filter, number>;
  for (const { _id } of inScope.value) {
    const one = seen(_id, atMs);
    if (one === null) continue;
    all.all++;
    all[one.isOnline ? 'online' : 'offline']++;
    if (one.activity === 'moving' || one.activity === 'standing' || one.activity === 'silent') all[one.activity]++;
    if (one.severity === 'critical' || one.severity === 'warning') all[one.severity]++;
  }
  return all;
});
