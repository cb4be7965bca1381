/** The orders of the list of objects. Within each, objects that are equal are ordered by name. */
import { computed } from '@preact/signals';
import { SEVERITIES, worstByObject } from '../state/alarms.js';
import { nowMs } from '../state/clock.js';
import { type FleetObject, objects } from '../state/fleet.js';
import { nameOf } from '../state/references.js';

/** The first one is that of an address without one. */
export const ORDERS = ['severity', 'name', 'seen', 'group', 'model'] as const;
export type Order = (typeof ORDERS)[number];

/** A list that is ordered by time moves under the pointer: the more objects, the less often. */
const SEEN_MS = 2_000;
const MANY = 5_000;
const MANY_SEEN_MS = 10_000;

const turn = computed(() => Math.floor(nowMs.value / (objects.size > MANY ? MANY_SEEN_MS : SEEN_MS)));

/** `all` come by name. */
export function toOrder(order: Order, all: readonly FleetObject[]): readonly FleetObject[] {
  if (order === 'severity') return bySeverity(all);
  if (order === 'seen') return byTime(all);
  return order === 'name' ? all : byReference(order, all);
}

function bySeverity(all: readonly FleetObject[]): readonly FleetObject[] {
  const worst = worstByObject.value;
  if (worst.size === 0) return all;
  const groups = SEVERITIES.map((severity) => all.filter(({ _id }) => worst.get(_id)?.severity === severity));
  return [...groups.flat(), ...all.filter(({ _id }) => !worst.has(_id))];
}

function byTime(all: readonly FleetObject[]): readonly FleetObject[] {
  turn.value;
  const timed = all.map((object) => ({ object, timeMs: objects.get(object._id)?.state?.time ?? 0 }));
  return timed.sort((one, other) => other.timeMs - one.timeMs).map(({ object }) => object);
}

function byReference(order: 'group' | 'model', all: readonly FleetObject[]): readonly FleetObject[] {
  const byId = new Map<string, FleetObject[]>();
  for (const object of all) {
    const same = byId.get(object[order]);
    if (same === undefined) byId.set(object[order], [object]);
    else same.push(object);
  }
  const named = [...byId].map(([id, same]) => ({ name: nameOf(`${order}s`, id), same }));
  return named
    .sort((one, other) => one.name.localeCompare(other.name, undefined, { numeric: true }))
    .flatMap(({ same }) => same);
}
