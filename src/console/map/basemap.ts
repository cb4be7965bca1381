/** The map beneath the objects: land, borders and towns, all from the server itself, so that it also works in closed networks. */
import type {
  ExpressionSpecification,
  FilterSpecification,
  Map as GlMap,
  LayerSpecification,
  StyleSpecification,
} from 'maplibre-gl';

export type GroundPart = 'land' | 'lines' | 'towns';

/** The worker of the map makes the tiles of the ground, up to this level. */
export const GROUND = { protocol: 'ground', maxLevel: 10 };

const GROUND_COLORS = {
  light: { land: '#f6f5f1', border: '#d3d0c6', coast: '#c3d1db', text: '#626b76', halo: '#f6f5f1' },
  dark: { land: '#1a222c', border: '#2d3946', coast: '#2a3846', text: '#8d99a6', halo: '#141b23' },
};

/** From this level on, the coarse outlines would look like polygons. */
export const FINE_LEVEL = 3;
/** Thin on a map of continents. */
const BORDER_PX: ExpressionSpecification = ['interpolate', ['linear'], ['zoom'], 2, 0.6, 8, 1.6];

const PEOPLE: ExpressionSpecification = ['get', 'people'];
/** In thousands. Cities are named at every zoom. */
const CITY_PEOPLE = 9_000;
/** Of the smallest towns that the console contains. */
const LEAST_PEOPLE = 100;
/** Smaller towns appear as the map is zoomed in. Filters know whole levels of zoom only. */
const TOWN_STEPS: readonly [number, number][] = [
  [3, 2_500],
  [4, 700],
  [5, 300],
  [6, LEAST_PEOPLE],
];
/** From this zoom on, the place of a name differs from that of the same name on another map. */
const DETAIL_ZOOM = 9;
const isCity: ExpressionSpecification = ['>=', PEOPLE, CITY_PEOPLE];
const isTown = (least: number): ExpressionSpecification => ['all', ['>=', PEOPLE, least], ['<', PEOPLE, CITY_PEOPLE]];
const TOWN_FILTER = ['step', ['zoom'], false, ...TOWN_STEPS.flatMap(([zoom, least]) => [zoom, isTown(least)])];

/** Where layers of the ground are added: above them is what the map is for. */
export const GROUND_END = 'ground-end';

/** The style of the first frame. The water is the background of the page. */
export const FIRST_STYLE: StyleSpecification = {
  version: 8,
  sources: {},
  layers: [{ id: GROUND_END, type: 'background', layout: { visibility: 'none' } }],
};

/** The layers of the ground, with the part that they draw, in the steps in which they are added. */
function layersOf(isDark: boolean): readonly (readonly [GroundPart, ...LayerSpecification[]])[] {
  const color = GROUND_COLORS[isDark ? 'dark' : 'light'];
  const of = <P extends GroundPart>(part: P) => ({ source: part, 'source-layer': part });
  const names = (id: string, filter: unknown): LayerSpecification => ({
    id,
    ...of('towns'),
    type: 'symbol',
    filter: filter as FilterSpecification,
    layout: {
      'text-field': ['get', 'name'],
      'text-font': ['sans-serif'],
      'text-size': ['interpolate', ['linear'], ['zoom'], 3, 10.5, 9, 14],
      'symbol-sort-key': ['-', PEOPLE],
      'text-padding': 8,
    },
    paint: { 'text-color': color.text, 'text-halo-color': color.halo, 'text-halo-width': 1.2 },
  });
  return [
    // Lines beside it make its edges smooth.
    ['land', { id: 'land', ...of('land'), type: 'fill', paint: { 'fill-color': color.land, 'fill-antialias': false } }],
    [
      'lines',
      {
        id: 'coasts',
        ...of('lines'),
        type: 'line',
        filter: ['get', 'isCoast'],
        paint: { 'line-color': color.coast, 'line-width': 1 },
      },
      {
        id: 'borders',
        ...of('lines'),
        type: 'line',
        filter: ['!', ['get', 'isCoast']],
        paint: { 'line-color': color.border, 'line-width': BORDER_PX },
      },
    ],
    // The largest first, because the letters of all names, drawn in one task, are a long one.
    ['towns', names('cities', isCity)],
    ['towns', names('towns', TOWN_FILTER)],
  ];
}

/** When the map has drawn all that it has, in a task of its own; never for a map that is removed by then. */
export function settled(map: GlMap): Promise<void> {
  return new Promise((resolve) => {
    map.once('idle', () => {
      const timer = setTimeout(() => resolve());
      map.once('remove', () => clearTimeout(timer));
    });
    // A map that is at rest already would not say so again.
    map.triggerRepaint();
  });
}

/** Adds the ground in steps: what each of them compiles, loads and draws is a task that nobody notices. */
export async function addBasemap(map: GlMap, isDark: boolean): Promise<void> {
  for (const [part, ...layers] of layersOf(isDark)) {
    await settled(map);
    const tiles = [`${GROUND.protocol}://${part}/{z}/{x}/{y}`];
    if (!map.getSource(part)) map.addSource(part, { type: 'vector', tiles, maxzoom: GROUND.maxLevel });
    for (const layer of layers) map.addLayer(layer, GROUND_END);
  }
}

export function colorBasemap(map: GlMap, isDark: boolean): void {
  const color = GROUND_COLORS[isDark ? 'dark' : 'light'];
  map.setPaintProperty('land', 'fill-color', color.land);
  map.setPaintProperty('coasts', 'line-color', color.coast);
  map.setPaintProperty('borders', 'line-color', color.border);
  for (const names of ['cities', 'towns']) {
    map.setPaintProperty(names, 'text-color', color.text);
    map.setPaintProperty(names, 'text-halo-color', color.halo);
  }
}

interface Bounds {
  readonly minLon: number;
  readonly minLat: number;
  readonly maxLon: number;
  readonly maxLat: number;
}

/** Close up, leaves the names within these bounds to another map, which has them in its own places. */
export function hideTowns(map: GlMap, { minLon, minLat, maxLon, maxLat }: Bounds): void {
  const corners = [minLon, maxLon, maxLon, minLon, minLon].map((lon, index) => [
    lon,
    index < 2 || index > 3 ? minLat : maxLat,
  ]);
  const isOutside: ExpressionSpecification = ['!', ['within', { type: 'Polygon', coordinates: [corners] }]];
  map.setFilter('cities', ['step', ['zoom'], isCity, DETAIL_ZOOM, ['all', isCity, isOutside]]);
  const detail = [DETAIL_ZOOM, ['all', isTown(LEAST_PEOPLE), isOutside]];
  map.setFilter('towns', [...TOWN_FILTER, ...detail] as FilterSpecification);
}
