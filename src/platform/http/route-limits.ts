/** Finds what the route of a request costs, which each route declares (`limit`). */
import type { Route } from './route.js';

export type RouteLimit = Route<never>['limit'];

/** The class of cost of a request by its method and whole path; null where no route answers. */
export type LimitFinder = (method: string, path: string) => RouteLimit | null;

interface Row {
  readonly segments: readonly string[];
  readonly limit: RouteLimit;
}

const segmentsOf = (path: string): string[] => path.split('/').filter((segment) => segment !== '');
const isParameter = (segment: string): boolean => segment.startsWith(':');
const literalsIn = ({ segments }: Row): number => segments.filter((segment) => !isParameter(segment)).length;

/** Of several routes for a path, the one with the most literal segments counts, as in the order of the routers. */
export function createLimitFinder(routes: readonly Pick<Route<never>, 'method' | 'path' | 'limit'>[]): LimitFinder {
  const rows = new Map<string, Row[]>();
  for (const { method, path, limit } of routes) {
    const segments = segmentsOf(path);
    const key = `${method} ${segments.length}`;
    const same = rows.get(key) ?? [];
    rows.set(
      key,
      [...same, { segments, limit }].toSorted((a, b) => literalsIn(b) - literalsIn(a)),
    );
  }
  return (method, path) => {
    const segments = segmentsOf(path);
    const row = rows.get(`${method === 'HEAD' ? 'GET' : method} ${segments.length}`)?.find((one) =>
      // Routers compare names without case.
      one.segments.every((wanted, at) => isParameter(wanted) || wanted.toLowerCase() === segments[at]?.toLowerCase()),
    );
    return row?.limit ?? null;
  };
}
