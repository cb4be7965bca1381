/** The worker of maps: MapLibre's own, which also reads the ground and cuts it into tiles. The page would stand still meanwhile. */
import 'maplibre-gl/dist/maplibre-gl-worker.mjs';
import { GeoJSONVT } from '@maplibre/geojson-vt';
import { fromGeojsonVt } from '@maplibre/vt-pbf';
import type { GeoJSON } from 'geojson';
import type { AddProtocolAction } from 'maplibre-gl';
import { FINE_LEVEL, GROUND, type GroundPart } from './basemap.js';
import { loadTowns, loadWorld } from './ground.js';

/** Of MapLibre's worker. */
declare const addProtocol: (name: string, load: AddProtocolAction) => void;

const cut = (data: GeoJSON): GeoJSONVT => new GeoJSONVT(data, { maxZoom: GROUND.maxLevel, extent: TILE.extent });

async function cutWorld(isFine: boolean) {
  const { land, lines } = await loadWorld(isFine);
  return { land: cut(land), lines: cut(lines) };
}

/** What `load` resolves with, loaded when it is first needed. */
function once<T>(load: () => Promise<T>): () => Promise<T> {
  let loaded: Promise<T> | undefined;
  return () => {
    loaded ??= load();
    return loaded;
  };
}

const coarse = once(() => cutWorld(false));
const fine = once(() => cutWorld(true));
const towns = once(async () => cut(await loadTowns()));
const TILE = { version: 2, extent: 4_096 };
const EMPTY = new ArrayBuffer(0);

addProtocol(GROUND.protocol, async ({ url }) => {
  const [part, level, x, y] = url.split('/').slice(-4) as [GroundPart, string, string, string];
  const world = Number(level) < FINE_LEVEL ? coarse : fine;
  const tile = (part === 'towns' ? await towns() : (await world())[part]).getTile(level, x, y);
  // A copy, because the encoder's buffer is longer than the tile.
  return { data: tile === null ? EMPTY : fromGeojsonVt({ [part]: tile }, TILE).slice().buffer };
});
