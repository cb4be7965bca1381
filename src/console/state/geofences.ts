/** Geofences: areas, lines and places with a name. */
import { batch, signal } from '@preact/signals';
import type { Geometry } from 'geojson';
import { type Entity, list, VigilError } from './api.js';
import { may } from './session.js';

export interface Geofence extends Entity {
  readonly name?: string;
  readonly geometry?: Geometry;
  readonly color?: unknown;
  /** Metres around a point. */
  readonly radius?: number;
}

/** More would hide the map, and each other. */
export const MAX_GEOFENCES = 1_000;

export const geofences = signal<readonly Geofence[] | null>(null);
/** Whether there are more than these. */
export const areGeofencesCut = signal(false);

/** Counts requests: an earlier answer may come later. */
let run = 0;

/** The newest ones; none where the user may not read them. */
export async function loadGeofences(): Promise<void> {
  if (!may('GET', '/geofences')) return;
  const mine = ++run;
  const found = await list<Geofence>('/geofences', { limit: MAX_GEOFENCES + 1, sortBy: '-_id' });
  if (mine !== run) return;
  batch(() => {
    geofences.value = found.slice(0, MAX_GEOFENCES);
    areGeofencesCut.value = found.length > MAX_GEOFENCES;
  });
}

/** For pages that are complete without geofences. */
export async function loadGeofencesOnce(): Promise<void> {
  if (geofences.value !== null) return;
  await loadGeofences().catch((error: unknown) => {
    if (!(error instanceof VigilError)) throw error;
  });
}
