/** The map beneath the objects, as the page names it: streets, a style, tiles, a file of tiles, or none. */
import type { RasterSourceSpecification, StyleSpecification } from 'maplibre-gl';

interface NamedMap {
  readonly kind: 'openfreemap' | 'style' | 'tiles' | 'file' | 'none';
  readonly url: string | null;
  readonly attribution: string | null;
}

const text = document.querySelector<HTMLMetaElement>('meta[name=vigil-map]')?.content ?? '';
const named: NamedMap | null = text === '' ? null : JSON.parse(text);

const STREETS_URL = 'https://tiles.openfreemap.org/styles/liberty';

/** A MapLibre style, or its address; null where the own outlines are shown. */
export const STYLE: string | StyleSpecification | null = toStyle();

/** The address of a file of tiles; null without one. */
export const TILES_URL: string | null = named?.kind === 'file' ? new URL(named.url ?? '', location.href).href : null;

function toStyle(): string | StyleSpecification | null {
  if (named?.kind === 'openfreemap') return STREETS_URL;
  if (named?.kind === 'style') return named.url;
  if (named?.kind !== 'tiles') return null;
  const tiles: RasterSourceSpecification = { type: 'raster', tiles: [named.url ?? ''], tileSize: 256 };
  tiles.attribution = escapeHtml(named);
  return { version: 8, sources: { tiles }, layers: [{ id: 'tiles', type: 'raster', source: 'tiles' }] };
}

/** MapLibre shows attributions as HTML. */
function escapeHtml({ attribution }: NamedMap): string {
  const element = document.createElement('span');
  element.textContent = attribution ?? '';
  return element.innerHTML;
}
