/** The objects of the table that are chosen to be changed together. */
import { signal } from '@preact/signals';
import type { FleetObject } from '../state/fleet.js';
import { may } from '../state/session.js';

/** As many as one can look through; the service changes no more at once either. */
export const MOST_CHOSEN = 1_000;

export const chosen = signal<ReadonlySet<string>>(new Set());

/** Whether the role changes or moves any objects. */
export const mayChoose = (): boolean => may('PATCH', '/objects') || mayMove();

/** Whether the role moves objects, as far as that does not depend on the group. */
export const mayMove = (): boolean => may('POST', '/groups/*/objects') && may('POST', '/objects');

/** Those of these rows that are chosen: what a filter has hidden since is left alone. */
export const chosenOf = (rows: readonly FleetObject[]): FleetObject[] =>
  rows.filter(({ _id }) => chosen.value.has(_id));

/** Chooses these, or no more; no more than can be changed at once. */
export function choose(ids: readonly string[], isChosen: boolean): void {
  const next = new Set(chosen.value);
  for (const id of ids) {
    if (!isChosen) next.delete(id);
    else if (next.size < MOST_CHOSEN) next.add(id);
  }
  chosen.value = next;
}

export const toggle = (id: string): void => choose([id], !chosen.value.has(id));
