/** The address of a wall: `/wall/<view>,<view>?every=30#<token>`. Behind the `#`, which browsers send to nobody, the token is in no log. */
import { toAddress, toPath } from '../state/location.js';

export interface WallAddress {
  /** Each once. */
  readonly views: readonly string[];
  /** How long each view is shown. */
  readonly everyMs: number;
  readonly token: string | null;
}

export const EVERY_S = 30;
const LEAST_S = 5;
const MOST_S = 3_600;

export function toWallAddress(views: readonly string[], everyS: number, token: string): string {
  const every = views.length > 1 ? `?every=${everyS}` : '';
  return `${location.origin}${toAddress(`/wall/${views.join(',')}`)}${every}#${token}`;
}

/** A token that was written as `?token=` goes behind the `#`. */
export function readWallAddress(): WallAddress {
  const query = new URLSearchParams(location.search);
  const given = query.get('token');
  if (given !== null) {
    query.delete('token');
    const rest = query.size > 0 ? `?${query}` : '';
    history.replaceState(null, '', `${location.pathname}${rest}#${given}`);
  }
  const [, , views = ''] = toPath(location.pathname).split('/');
  const everyS = Number.parseFloat(query.get('every') ?? '') || EVERY_S;
  return {
    views: [...new Set(decodeURIComponent(views).split(',').filter(Boolean))],
    everyMs: Math.min(MOST_S, Math.max(LEAST_S, everyS)) * 1_000,
    token: location.hash.slice(1) || null,
  };
}
