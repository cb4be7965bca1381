/** Draws the tiles of the operator's file over the countries: images, or vector tiles of the two usual schemas. */
import { effect } from '@preact/signals';
import { addProtocol, type Map as GlMap } from 'maplibre-gl';
import { PMTiles, Protocol, TileType } from 'pmtiles';
import { language } from '../text/language.js';
import { GROUND_END, hideTowns } from './basemap.js';
import { PLACES, TILES, tileLayersOf } from './tile-layers.js';

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

/** The names of towns that are part of the console. */
const TOWNS = 'cities';

/** Adds the tiles to the ground. */
export async function addTiles(map: GlMap, url: string, isDark: boolean): Promise<TilesLayer> {
  const protocol = new Protocol();
  const file = new PMTiles(url);
  protocol.add(file);
  addProtocol('pmtiles', protocol.tile);
  const [header, metadata] = await Promise.all([file.getHeader(), file.getMetadata()]);
  const { vector_layers: layers = [], attribution: html = '' } = metadata as Metadata;
  const attribution = new DOMParser().parseFromString(html, 'text/html').body.textContent ?? '';
  if (header.tileType !== TileType.Mvt) {
    map.addSource(TILES, { type: 'raster', url: `pmtiles://${url}`, tileSize: 256 });
    map.addLayer({ id: TILES, type: 'raster', source: TILES }, TOWNS);
    return { attribution, setDark: () => undefined };
  }
  map.addSource(TILES, { type: 'vector', url: `pmtiles://${url}` });
  const present = new Set(layers.map(({ id }) => id));
  if (PLACES.some((id) => present.has(id))) hideTowns(map, header);
  return { attribution, setDark: addLayers(map, present, isDark) };
}

/** Names are drawn before those of the ground, which leave out what has no room then. Returns what changes the theme. */
function addLayers(map: GlMap, present: ReadonlySet<string>, isDark: boolean): (isDark: boolean) => void {
  for (const layer of tileLayersOf(present, isDark, language.peek()))
    map.addLayer(layer, layer.type === 'symbol' ? GROUND_END : TOWNS);
  const stop = effect(() => {
    for (const { id, type, layout } of tileLayersOf(present, isDark, language.value))
      if (type === 'symbol') map.setLayoutProperty(id, 'text-field', layout?.['text-field']);
  });
  map.on('remove', stop);
  return (wanted) => {
    for (const { id, paint = {} } of tileLayersOf(present, wanted, language.peek()))
      for (const [name, value] of Object.entries(paint))
        map.setPaintProperty(id, name as 'fill-color', value as string);
  };
}
