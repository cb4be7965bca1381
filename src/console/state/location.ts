/** The address of the page: the console may be served below a path of another site. */
import { useLocation as useBrowserLocation } from 'preact-iso/router';

/** That path, as the service writes it into the page: `/vigil`, or nothing at the root of a site. */
export const BASE: string = globalThis.document?.querySelector<HTMLMetaElement>('meta[name=vigil-base]')?.content ?? '';

/** The address of a path of Vigil: `/models` is at `/vigil/models`. */
export const toAddress = (path: string): string => `${BASE}${path}`;

/** The path of Vigil at an address, without the site's. */
export function toPath(pathname: string): string {
  const isBelow = pathname === BASE || pathname.startsWith(`${BASE}/`);
  return isBelow ? pathname.slice(BASE.length) || '/' : pathname;
}

interface Location {
  /** The path of Vigil. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** Opens a path of Vigil, with its query. */
  readonly route: (path: string, replace?: boolean) => void;
}

export function useLocation(): Location {
  const { path, query, route } = useBrowserLocation();
  return { path: toPath(path), query, route: (next, replace) => route(toAddress(next), replace) };
}
