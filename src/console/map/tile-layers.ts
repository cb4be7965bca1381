/** How vector tiles of the two usual schemas, Protomaps and OpenMapTiles, are drawn. Pure. */
import type { ExpressionSpecification, FilterSpecification, LayerSpecification } from 'maplibre-gl';
import { nameIn } from './labels.js';

export const TILES = 'tiles';
const COLORS = {
  light: {
    water: '#cfdfea',
    green: '#e2ead6',
    wood: '#d3e1c6',
    field: '#f0efdf',
    sand: '#f3ecd2',
    ice: '#f4f8fa',
    homes: '#efeeea',
    works: '#ebe8ee',
    public: '#f3ece3',
    road: '#ffffff',
    edge: '#d9d5ca',
    building: '#e2ded4',
    text: '#5b636d',
    street: '#6b6a62',
    halo: '#f6f5f1',
  },
  dark: {
    water: '#0e141b',
    green: '#18261f',
    wood: '#16291f',
    field: '#1d2523',
    sand: '#262722',
    ice: '#222c36',
    homes: '#1d2530',
    works: '#212636',
    public: '#252630',
    road: '#2f3b48',
    edge: '#3a4755',
    building: '#26313d',
    text: '#98a4b1',
    street: '#8b97a4',
    halo: '#141b23',
  },
};
type Colors = Readonly<(typeof COLORS)['light']>;
type Color = keyof Colors;

/** What kind of road, land or place it is, in either schema. */
const KIND: ExpressionSpecification = ['coalesce', ['get', 'kind'], ['get', 'class'], ''];
const isOf = (kinds: readonly string[]): ExpressionSpecification => ['in', KIND, ['literal', [...kinds]]];

const words = (text: string): readonly string[] => text.split(' ');

/** Where people live is drawn beneath the parks in it. */
const HOMES = words('residential suburb quarter neighbourhood urban_area village');
const PARKS = words(
  'park grass grassland garden meadow village_green recreation_ground golf_course urban_green scrub wetland',
);
const RESERVES = words(
  'nature_reserve national_park protected_area cemetery allotments camp_site zoo theme_park dog_park',
);
const SPORTS = words('pitch playground stadium track');
const WORKS = words(
  'industrial commercial retail railway garages quarry landfill construction dam bus_station military',
);
const AIRPORTS = words('airfield aerodrome runway taxiway naval_base pier');
const PUBLIC = words('school university college kindergarten library hospital pedestrian platform');

/** The use of land and its cover by their kinds; what is not listed looks like any other land. */
const LAND: readonly (readonly [Color, readonly string[]])[] = [
  ['green', PARKS],
  ['green', RESERVES],
  ['green', SPORTS],
  ['wood', words('wood forest')],
  ['field', words('farmland farmyard orchard vineyard')],
  ['sand', words('sand beach rock bare_rock scree barren')],
  ['ice', words('ice glacier')],
  ['works', WORKS],
  ['works', AIRPORTS],
  ['public', PUBLIC],
];

function landColor(color: Colors): ExpressionSpecification {
  const cases = LAND.flatMap(([name, kinds]) => [kinds, color[name]]);
  return ['match', KIND, ...cases, 'rgba(0, 0, 0, 0)'] as unknown as ExpressionSpecification;
}

interface Area {
  readonly layer: string;
  readonly part?: string;
  readonly color: (colors: Colors) => string | ExpressionSpecification;
  readonly filter?: FilterSpecification;
}

/** From the bottom up. */
const AREAS: readonly Area[] = [
  { layer: 'landuse', part: 'homes', color: ({ homes }) => homes, filter: isOf(HOMES) },
  { layer: 'landcover', color: landColor },
  { layer: 'landuse', color: landColor, filter: ['!', isOf(HOMES)] },
  { layer: 'park', color: ({ green }) => green },
  { layer: 'water', color: ({ water }) => water },
  { layer: 'building', color: ({ building }) => building },
  { layer: 'buildings', color: ({ building }) => building },
];
const LINES: readonly (readonly [string, Color])[] = [
  ['waterway', 'water'],
  ['boundary', 'edge'],
  ['boundaries', 'edge'],
];
const ROADS = ['roads', 'transportation'];
/** The layers that contain names of streets. */
const STREETS = ['roads', 'transportation_name'];
/** The layers that contain names of places. */
export const PLACES = ['place', 'places'];

const RAILS = ['rail', 'transit'];
/** On roads' layers, but no roads. */
const OTHERS = ['ferry', 'aerialway', 'aeroway', 'pier'];
const isRoad: ExpressionSpecification = ['!', isOf([...RAILS, ...OTHERS])];
/** How wide a road is drawn; the last is for tracks and paths. */
const WEIGHT: ExpressionSpecification = [
  'match',
  KIND,
  ['motorway', 'trunk', 'highway'],
  1,
  ['primary', 'secondary', 'major_road'],
  0.7,
  ['tertiary', 'minor', 'minor_road'],
  0.45,
  0.15,
] as unknown as ExpressionSpecification;
const EDGE_PX = 1.5;

const roadWidth = (edgePx: number): ExpressionSpecification =>
  [
    ...(['interpolate', ['exponential', 1.5], ['zoom']] as const),
    ...([5, ['+', ['*', 1, WEIGHT], edgePx / 3]] as const),
    ...([10, ['+', ['*', 3.5, WEIGHT], edgePx]] as const),
    ...([18, ['+', ['*', 24, WEIGHT], edgePx]] as const),
  ] as unknown as ExpressionSpecification;

/** The layers for the tiles that contain these, from the bottom up. */
export function tileLayersOf(present: ReadonlySet<string>, isDark: boolean, language: string): LayerSpecification[] {
  const color = COLORS[isDark ? 'dark' : 'light'];
  const isThere = (id: string): boolean => present.has(id);
  return [
    ...AREAS.filter(({ layer }) => isThere(layer)).map((area) => areaLayer(area, color)),
    ...LINES.filter(([id]) => isThere(id)).map(
      ([id, name]): LayerSpecification => ({
        ...shared(id),
        type: 'line',
        paint: { 'line-color': color[name], 'line-width': ['interpolate', ['linear'], ['zoom'], 6, 0.6, 16, 6] },
      }),
    ),
    ...ROADS.filter(isThere).flatMap((id) => roadLayers(id, color)),
    ...STREETS.filter(isThere).map((id) => streetLayer(id, color, language)),
    ...PLACES.filter(isThere).map((id) => placeLayer(id, color, language)),
  ];
}

const shared = (id: string, part?: string) => ({
  id: part === undefined ? `${TILES}-${id}` : `${TILES}-${id}-${part}`,
  source: TILES,
  'source-layer': id,
});

function areaLayer({ layer, part, color, filter }: Area, colors: Colors): LayerSpecification {
  return { ...shared(layer, part), type: 'fill', ...(filter && { filter }), paint: { 'fill-color': color(colors) } };
}

/** Rails as thin lines, and roads with an edge on both sides. */
function roadLayers(id: string, color: Colors): LayerSpecification[] {
  const layout = { 'line-cap': 'round', 'line-join': 'round' } as const;
  const toLayer = (part: string, filter: ExpressionSpecification, paint: object): LayerSpecification => ({
    ...shared(id, part),
    type: 'line',
    layout,
    filter,
    paint,
  });
  return [
    toLayer('rails', isOf(RAILS), { 'line-color': color.edge, 'line-width': 1 }),
    toLayer('edges', isRoad, { 'line-color': color.edge, 'line-width': roadWidth(EDGE_PX) }),
    toLayer('roads', isRoad, { 'line-color': color.road, 'line-width': roadWidth(0) }),
  ];
}

/** The names of streets along them, at every zoom at which tiles have them; the numbers of roads without a name. */
function streetLayer(id: string, color: Colors, language: string): LayerSpecification {
  return {
    ...shared(id, 'names'),
    type: 'symbol',
    filter: isRoad,
    layout: {
      'symbol-placement': 'line',
      'symbol-sort-key': ['-', WEIGHT],
      'text-field': ['coalesce', nameIn(language), ['get', 'ref']],
      'text-font': ['sans-serif'],
      'text-size': ['interpolate', ['linear'], ['zoom'], 12, 10.5, 18, 14],
    },
    paint: { 'text-color': color.street, 'text-halo-color': color.halo, 'text-halo-width': 1.4 },
  };
}

/** The more important a place is, the lower the number. */
const RANK: ExpressionSpecification = [
  'case',
  ['has', 'rank'],
  ['to-number', ['get', 'rank'], 99],
  ['-', 20, ['to-number', ['get', 'population_rank'], 0]],
];
/** Their names would lie somewhere in a country. */
const LANDS = ['continent', 'country', 'state', 'region', 'province'];
const PLACE_KIND: ExpressionSpecification = ['coalesce', ['get', 'kind_detail'], KIND];

function placeLayer(id: string, color: Colors, language: string): LayerSpecification {
  const size = (city: number, town: number, other: number): ExpressionSpecification =>
    ['match', PLACE_KIND, 'city', city, 'town', town, other] as unknown as ExpressionSpecification;
  return {
    ...shared(id),
    type: 'symbol',
    filter: ['!', isOf(LANDS)],
    layout: {
      'symbol-sort-key': RANK,
      'text-field': nameIn(language),
      'text-font': ['sans-serif'],
      'text-size': ['interpolate', ['linear'], ['zoom'], 4, size(12, 10.5, 10.5), 12, size(17, 14, 12)],
      'text-max-width': 8,
      'text-padding': 6,
    },
    paint: { 'text-color': color.text, 'text-halo-color': color.halo, 'text-halo-width': 1.4 },
  };
}
