/** The map beneath the objects: land, borders and towns, all from the server itself, so that it also works in closed networks. */
import type { FeatureCollection } from 'geojson';
import type {
  ExpressionSpecification,
  GeoJSONSource,
  GeoJSONSourceSpecification,
  Map as GlMap,
  StyleSpecification,
} from 'maplibre-gl';
import { feature, mesh } from 'topojson-client';
import type { GeometryCollection, Topology } from 'topojson-specification';

declare const BASEMAP: { readonly coarse: string; readonly fine: string; readonly towns: string };

type World = Topology<{ countries: GeometryCollection<{ name: string }> }>;

const EMPTY: FeatureCollection = { type: 'FeatureCollection', features: [] };
/** From here on the coarse outlines look like polygons. */
const FINE_ZOOM = 3.4;
const RETRY_MS = 3_000;
const MAX_ATTEMPTS = 100;

const COLORS = {
  light: { water: '#dbe6ee', land: '#f6f5f1', border: '#d3d0c6', coast: '#c3d1db', text: '#626b76', halo: '#f6f5f1' },
  dark: { water: '#0e141b', land: '#1a222c', border: '#2d3946', coast: '#2a3846', text: '#8d99a6', halo: '#141b23' },
};

/** Smaller towns appear as the map is zoomed in; people are counted in thousands. Filters know whole levels of zoom only. */
const TOWNS: ExpressionSpecification = ['step', ['zoom'], ['>=', ['get', 'people'], 9_000]] as never;
const TOWN_STEPS: readonly [number, number][] = [
  [3, 2_500],
  [4, 700],
  [5, 300],
  [6, 100],
];

export function createStyle(isDark: boolean): StyleSpecification {
  const color = COLORS[isDark ? 'dark' : 'light'];
  const source: GeoJSONSourceSpecification = { type: 'geojson', data: EMPTY };
  return {
    version: 8,
    sources: { land: source, borders: source, towns: source },
    layers: [
      { id: 'water', type: 'background', paint: { 'background-color': color.water } },
      {
        id: 'land',
        type: 'fill',
        source: 'land',
        paint: { 'fill-color': color.land, 'fill-outline-color': color.coast },
      },
      {
        ...{ id: 'borders', type: 'line', source: 'borders' },
        paint: { 'line-color': color.border, 'line-width': ['interpolate', ['linear'], ['zoom'], 2, 0.6, 8, 1.6] },
      },
      {
        ...{ id: 'towns', type: 'symbol', source: 'towns' },
        filter: [
          ...TOWNS,
          ...TOWN_STEPS.flatMap(([zoom, people]) => [zoom, ['>=', ['get', 'people'], people]]),
        ] as never,
        layout: {
          'text-field': ['get', 'name'],
          'text-font': ['sans-serif'],
          'text-size': ['interpolate', ['linear'], ['zoom'], 3, 10.5, 9, 14],
          'symbol-sort-key': ['-', ['get', 'people']],
          'text-padding': 8,
        },
        paint: { 'text-color': color.text, 'text-halo-color': color.halo, 'text-halo-width': 1.2 },
      },
    ],
  };
}

export function colorBasemap(map: GlMap, isDark: boolean): void {
  const color = COLORS[isDark ? 'dark' : 'light'];
  map.setPaintProperty('water', 'background-color', color.water);
  map.setPaintProperty('land', 'fill-color', color.land);
  map.setPaintProperty('land', 'fill-outline-color', color.coast);
  map.setPaintProperty('borders', 'line-color', color.border);
  map.setPaintProperty('towns', 'text-color', color.text);
  map.setPaintProperty('towns', 'text-halo-color', color.halo);
}

/** Loads the coarse outlines and the towns at once, and the fine outlines when somebody looks closer. */
export async function loadBasemap(map: GlMap): Promise<void> {
  let isFine = false;
  const refine = (): Promise<void> | undefined => {
    if (isFine || map.getZoom() < FINE_ZOOM) return;
    isFine = true;
    return showWorld(map, BASEMAP.fine);
  };
  map.on('zoom', () => void refine()?.catch(() => undefined));
  const coarse = showWorld(map, BASEMAP.coarse, () => !isFine);
  await Promise.all([coarse, showTowns(map), refine()]);
}

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

/** The coarse outlines of all countries. */
export async function loadOutlines(): Promise<FeatureCollection> {
  const world = await load<World>(BASEMAP.coarse);
  return feature(world, world.objects.countries);
}

async function showWorld(map: GlMap, url: string, isWanted = () => true): Promise<void> {
  const world = await load<World>(url);
  const { countries } = world.objects;
  if (!isWanted()) return;
  sourceOf(map, 'land')?.setData(feature(world, countries));
  sourceOf(map, 'borders')?.setData(mesh(world, countries, (a, b) => a !== b));
}

async function showTowns(map: GlMap): Promise<void> {
  const towns = await load<[string, number, number, number][]>(BASEMAP.towns);
  const features = towns.map(([name, lon, lat, people]) => ({
    type: 'Feature' as const,
    properties: { name, people },
    geometry: { type: 'Point' as const, coordinates: [lon, lat] },
  }));
  sourceOf(map, 'towns')?.setData({ type: 'FeatureCollection', features });
}

const sourceOf = (map: GlMap, name: string): GeoJSONSource | undefined => map.getSource<GeoJSONSource>(name);
