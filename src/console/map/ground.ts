/** Reads the ground of the map from the server: countries and towns. */
import type { FeatureCollection } from 'geojson';
import { feature, mesh } from 'topojson-client';
import type { GeometryCollection, Topology } from 'topojson-specification';
import { unwrap } from './antimeridian.js';

declare const BASEMAP: { readonly coarse: string; readonly fine: string; readonly towns: string };

type World = Topology<{ countries: GeometryCollection<{ name: string }> }>;

const RETRY_MS = 3_000;
const MAX_ATTEMPTS = 100;

/** A file of the map; asks again while the server cannot be reached. */
async function load<T>(url: string): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return (await (await fetch(url)).json()) as T;
    } catch (error) {
      if (attempt === MAX_ATTEMPTS) throw error;
      await new Promise<void>((resolve) => setTimeout(() => resolve(), RETRY_MS));
    }
  }
}

/** The areas of all countries, and the lines around and between them. */
export async function loadWorld(isFine: boolean): Promise<{ land: FeatureCollection; lines: FeatureCollection }> {
  const world = await load<World>(isFine ? BASEMAP.fine : BASEMAP.coarse);
  const { countries } = world.objects;
  const lines = [true, false].map((isCoast) => ({
    type: 'Feature' as const,
    properties: { isCoast },
    geometry: mesh(world, countries, (one, other) => (one === other) === isCoast),
  }));
  return { land: unwrap(feature(world, countries)), lines: unwrap({ type: 'FeatureCollection', features: lines }) };
}

export async function loadTowns(): Promise<FeatureCollection> {
  const towns = await load<[string, number, number, number][]>(BASEMAP.towns);
  const features = towns.map(([name, lon, lat, people]) => ({
    type: 'Feature' as const,
    properties: { name, people },
    geometry: { type: 'Point' as const, coordinates: [lon, lat] },
  }));
  return { type: 'FeatureCollection', features };
}
