/** The operator's own map, as the page names it. */
const TILES = '.pmtiles';
const named = document.querySelector<HTMLMetaElement>('meta[name=vigil-map]')?.content ?? '';

/** The address of a MapLibre style; null without one. */
export const STYLE_URL: string | null = named === '' || named.startsWith('/') ? null : named;

/** The address of a file of tiles; null without one. */
export const TILES_URL: string | null =
  named.startsWith('/') && named.endsWith(TILES) ? new URL(named, location.href).href : null;
