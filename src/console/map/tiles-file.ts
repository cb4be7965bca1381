/** Draws the tiles of the operator's file over the countries: images, or vector tiles of the two usual schemas. */
import { addProtocol, type Map as GlMap, type LayerSpecification } from 'maplibre-gl';
import { PMTiles, Protocol, TileType } from 'pmtiles';

const SOURCE = 'tiles';
const COLORS = {
  light: { water: '#cfdfea', green: '#e6ecdb', road: '#ffffff', edge: '#d9d5ca', building: '#e7e4db', text: '#5b636d' },
  dark: { water: '#0e141b', green: '#18241f', road: '#2f3b48', edge: '#3a4755', building: '#202a35', text: '#98a4b1' },
};
type Color = keyof (typeof COLORS)['light'];

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
  ['roads', 'road'],
  ['transportation', 'road'],
];
const NAMES = ['place', 'places'];

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
  const [protocol, file] = [new Protocol(), new PMTiles(url)];
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
        ...{ ...shared(id), type: 'line' },
        paint: { 'line-color': color[name], 'line-width': ['interpolate', ['linear'], ['zoom'], 6, 0.6, 16, 6] },
      }),
    ),
    ...NAMES.filter((id) => present.has(id)).map(
      (id): LayerSpecification => ({
        ...{ ...shared(id), type: 'symbol', minzoom: 8 },
        layout: { 'text-field': ['get', 'name'], 'text-font': ['sans-serif'], 'text-size': 12 },
        paint: { 'text-color': color.text, 'text-halo-color': color.building, 'text-halo-width': 1.2 },
      }),
    ),
  ];
}
