/** Draws the tiles of the operator's file over the countries: images, or vector tiles of the two usual schemas. */
import { addProtocol, type ExpressionSpecification, type Map as GlMap, type LayerSpecification } from 'maplibre-gl';
import { PMTiles, Protocol, TileType } from 'pmtiles';

const SOURCE = 'tiles';
const COLORS = {
  light: { water: '#cfdfea', green: '#e6ecdb', road: '#ffffff', edge: '#d9d5ca', building: '#e7e4db', text: '#5b636d' },
  dark: { water: '#0e141b', green: '#18241f', road: '#2f3b48', edge: '#3a4755', building: '#202a35', text: '#98a4b1' },
};
type Colors = Readonly<(typeof COLORS)['light']>;
type Color = keyof Colors;

/** What layers of Protomaps and of OpenMapTiles are drawn as, from the bottom up. */
const AREAS: readonly (readonly [string, Color])[] = [
  ['landcover', 'green'],
  ['landuse', 'green'],
  ['park', 'green'],
  ['water', 'water'],
  ['building', 'building'],
  ['buildings', 'building'],
];
const LINES: readonly (readonly [string, Color])[] = [
  ['waterway', 'water'],
  ['boundary', 'edge'],
  ['boundaries', 'edge'],
];
const ROADS = ['roads', 'transportation'];
const NAMES = ['place', 'places'];

/** What kind of road it is, in either schema. */
const KIND: ExpressionSpecification = ['coalesce', ['get', 'kind'], ['get', 'class'], ''];
const RAILS = ['rail', 'transit'];
/** On roads' layers, but no roads. */
const OTHERS = ['ferry', 'aerialway', 'aeroway', 'pier'];
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

export interface TilesLayer {
  /** Whose map it is. Licences want it shown. */
  readonly attribution: string;
  setDark(isDark: boolean): void;
}

interface Metadata {
  readonly vector_layers?: readonly { readonly id: string }[];
  /** HTML with links; only its text is shown. */
  readonly attribution?: string;
}

/** The names above the tiles. */
const ABOVE = 'cities';

/** Adds the tiles beneath the names of towns. */
export async function addTiles(map: GlMap, url: string, isDark: boolean): Promise<TilesLayer> {
  const protocol = new Protocol();
  const file = new PMTiles(url);
  protocol.add(file);
  addProtocol('pmtiles', protocol.tile);
  const [{ tileType }, metadata] = await Promise.all([file.getHeader(), file.getMetadata()]);
  const { vector_layers: layers = [], attribution: html = '' } = metadata as Metadata;
  const attribution = new DOMParser().parseFromString(html, 'text/html').body.textContent ?? '';
  if (tileType !== TileType.Mvt) {
    map.addSource(SOURCE, { type: 'raster', url: `pmtiles://${url}`, tileSize: 256 });
    map.addLayer({ id: SOURCE, type: 'raster', source: SOURCE }, ABOVE);
    return { attribution, setDark: () => undefined };
  }
  map.addSource(SOURCE, { type: 'vector', url: `pmtiles://${url}` });
  const shown = layersOf(new Set(layers.map(({ id }) => id)), isDark);
  for (const layer of shown) map.addLayer(layer, ABOVE);
  return {
    attribution,
    setDark(wanted) {
      const again = layersOf(new Set(layers.map(({ id }) => id)), wanted);
      for (const { id, paint = {} } of again)
        for (const [name, value] of Object.entries(paint))
          map.setPaintProperty(id, name as 'fill-color', value as string);
    },
  };
}

function layersOf(present: ReadonlySet<string>, isDark: boolean): LayerSpecification[] {
  const color = COLORS[isDark ? 'dark' : 'light'];
  const shared = (id: string) => ({ id: `${SOURCE}-${id}`, source: SOURCE, 'source-layer': id });
  const has = ([id]: readonly [string, Color]): boolean => present.has(id);
  return [
    ...AREAS.filter(has).map(
      ([id, name]): LayerSpecification => ({ ...shared(id), type: 'fill', paint: { 'fill-color': color[name] } }),
    ),
    ...LINES.filter(has).map(
      ([id, name]): LayerSpecification => ({
        ...shared(id),
        type: 'line',
        paint: { 'line-color': color[name], 'line-width': ['interpolate', ['linear'], ['zoom'], 6, 0.6, 16, 6] },
      }),
    ),
    ...ROADS.filter((id) => present.has(id)).flatMap((id) => roadLayers(shared(id), color)),
    ...NAMES.filter((id) => present.has(id)).map(
      (id): LayerSpecification => ({
        ...shared(id),
        type: 'symbol',
        minzoom: 8,
        layout: { 'text-field': ['get', 'name'], 'text-font': ['sans-serif'], 'text-size': 12 },
        paint: { 'text-color': color.text, 'text-halo-color': color.building, 'text-halo-width': 1.2 },
      }),
    ),
  ];
}

/** Rails as thin lines, and roads with an edge on both sides. */
function roadLayers(
  shared: { id: string; source: string; 'source-layer': string },
  color: Colors,
): LayerSpecification[] {
  const isOf = (kinds: readonly string[]): ExpressionSpecification => ['in', KIND, ['literal', [...kinds]]];
  const isRoad: ExpressionSpecification = ['!', isOf([...RAILS, ...OTHERS])];
  const layout = { 'line-cap': 'round', 'line-join': 'round' } as const;
  const toLayer = (part: string, filter: ExpressionSpecification, paint: object): LayerSpecification => ({
    ...shared,
    id: `${shared.id}-${part}`,
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
