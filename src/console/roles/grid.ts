/**
 * The lines of a role as boxes: a row for each family of requests that the service declares, a column for each method. Each box
 * stands for one line. What a line permits is decided by the rules of every request.
 */
import { covers as coversLine } from '../../core/grants.js';
import { isForAll, requiredMethod } from '../../core/route-access.js';

/** Between two presses, most lines stay the same: what was found of them is kept. */
const found = new Map<string, boolean>();
const MOST_FOUND = 100_000;

function covers(held: string, wanted: string): boolean {
  const key = `${held}\n${wanted}`;
  const known = found.get(key);
  if (known !== undefined) return known;
  if (found.size >= MOST_FOUND) found.clear();
  const isCovered = coversLine(held, wanted);
  found.set(key, isCovered);
  return isCovered;
}

export const METHODS = ['GET', 'POST', 'PATCH', 'DELETE'] as const;
export type Method = (typeof METHODS)[number];
/** `*` is every method. */
export const COLUMNS = ['*', ...METHODS] as const;
export type Column = (typeof COLUMNS)[number];

/** A declared request that needs a permission. */
export interface Declared {
  readonly method: Method;
  /** The narrowest line that permits it for every entity: `GET /objects/:id/packets`. */
  readonly line: string;
  /** The path of its row. */
  readonly row: string;
}

export interface Box {
  readonly row: string;
  readonly column: Column;
  readonly line: string;
  /** What the line permits. */
  readonly requests: readonly Declared[];
}

export interface Row {
  /** Under which its texts are: `objects`, `objects.packets`; `alarms-acknowledge` is not of one alarm. Null for an own store. */
  readonly name: string | null;
  // `/objects`, `/objects/*/packets`; `/` is everything.
  readonly path: string;
  readonly boxes: Readonly<Partial<Record<Column, Box>>>;
  /** The rows of what a store has besides its entities. */
  readonly below: readonly Row[];
}

export interface Grid {
  readonly rows: readonly Row[];
  readonly requests: readonly Declared[];
}

/** The declared requests of an OpenAPI document that need to log in, as `GET /objects/:id`. */
export function requestsIn(document: { readonly paths?: unknown }): string[] {
  type Operations = Readonly<Record<string, { readonly security?: readonly unknown[] } | undefined>>;
  return Object.entries((document.paths ?? {}) as Readonly<Record<string, Operations>>).flatMap(([path, operations]) =>
    METHODS.filter((method) => {
      const operation = operations[method.toLowerCase()];
      return operation !== undefined && operation.security?.length !== 0;
    }).map((method) => `${method} ${path.replace(/^\/api\/v1(?=\/|$)/, '').replace(/\{(\w+)\}/g, ':$1')}`),
  );
}

/** `declared` as `GET /objects/:id`; `:store` stands for each of the own stores. */
export function createGrid(declared: readonly string[], ownStores: readonly string[]): Grid {
  const all = declared.flatMap((one) =>
    one.includes(' /:store') ? ownStores.map((store) => one.replace('/:store', () => `/${store}`)) : [one],
  );
  const lines = new Map(all.flatMap((one) => toDeclared(one)).map((one) => [`${one.method} ${one.line}`, one]));
  const requests = withoutLonelyRows([...lines.values()]);
  const stores = [...new Set(requests.map(({ row }) => storeOf(row)))];
  const everything = {
    path: '/',
    name: 'everything',
    boxes: toBoxes('/', (column) => `${column} /*`, requests),
    below: [],
  };
  const rows = stores.map((store) => toStoreRow(store, requests, ownStores.includes(store)));
  return { rows: [everything, ...rows], requests };
}

export const storeOf = (path: string): string => path.split('/')[1] ?? '';

function toDeclared(text: string): Declared[] {
  const [method = '', path = ''] = text.split(' ');
  // A parameter of a line is any segment, but `:object` is the object of a device.
  const segments = path
    .split('/')
    .filter(Boolean)
    .map((segment) => (segment.startsWith(':') ? ':id' : segment));
  if (segments.length === 0 || segments[0] === 'account' || isForAll(segments)) return [];
  const named = segments.findIndex((segment, index) => index > 0 && segment !== ':id');
  const row = segments.slice(0, named === -1 ? 1 : named + 1).map((segment) => (segment === ':id' ? '*' : segment));
  const line = `${requiredMethod(method, segments)} /${segments.join('/')}`;
  return [{ method: method as Method, line, row: `/${row.join('/')}` }];
}

/** What is of no store, such as `/geocoder/search`, is one row. */
function withoutLonelyRows(requests: readonly Declared[]): Declared[] {
  const main = new Set(requests.map(({ row }) => row));
  return requests.map((one) => (main.has(`/${storeOf(one.row)}`) ? one : { ...one, row: `/${storeOf(one.row)}` }));
}

function toStoreRow(store: string, requests: readonly Declared[], isOwn: boolean): Row {
  const family = requests.filter(({ row }) => storeOf(row) === store);
  const toRow = (path: string, below: readonly Row[] = []): Row => {
    const name = isOwn ? null : path.slice(1).replaceAll('/*/', '.').replaceAll('/', '-');
    return { path, name, boxes: toBoxes(path, (column) => lineOf(path, column, family), family), below };
  };
  const path = `/${store}`;
  const below = [...new Set(family.map(({ row }) => row))].filter((one) => one !== path);
  return toRow(
    path,
    below.map((one) => toRow(one)),
  );
}

/** The line of a box; null if there is none. */
function lineOf(path: string, column: Column, family: readonly Declared[]): string | null {
  const own = family.filter(({ row }) => row === path);
  const methods = new Set(own.map(({ method }) => method));
  const needsAll = own.some(({ line }) => line.startsWith('* '));
  // One line permits all methods of what needs `*`.
  const isOneBox = needsAll && methods.size > 1;
  if (column === '*' && !needsAll)
    return path === `/${storeOf(path)}` && family.length > own.length ? `* ${path}/*` : null;
  const mine = isOneBox ? own.filter(() => column === '*') : own.filter(({ method }) => method === column);
  if (mine.length === 0) return null;
  // An open line also permits what is below.
  const isOpen = mine.some(({ line }) => line.split('/').length > path.split('/').length);
  return `${needsAll ? '*' : column} ${path}${isOpen ? '/*' : ''}`;
}

function toBoxes(row: string, toLine: (column: Column) => string | null, requests: readonly Declared[]): Row['boxes'] {
  const boxes = COLUMNS.flatMap((column) => {
    const line = toLine(column);
    if (line === null) return [];
    return [[column, { row, column, line, requests: requests.filter((one) => covers(line, one.line)) }] as const];
  });
  return Object.fromEntries(boxes);
}

export const boxesOf = ({ rows }: Grid): Box[] =>
  rows.flatMap((row) => [row, ...row.below]).flatMap(({ boxes }) => Object.values(boxes));

/** The requests that the lines permit for every entity. */
export const permittedBy = (lines: readonly string[], requests: readonly Declared[]): ReadonlySet<Declared> =>
  new Set(requests.filter(({ line }) => lines.some((one) => covers(one, line))));

/** Whether two lines permit the same, such as `GET /objects/*` and `GET objects/*`. */
const isSame = (one: string, other: string): boolean => covers(one, other) && covers(other, one);

export type BoxState =
  | { readonly kind: 'off' | 'partly' | 'on' }
  /** By a wider line, which decides alone. */
  | { readonly kind: 'covered'; readonly by: string };

/** `permitted` is what the lines permit. */
export function stateOf({ line, requests }: Box, lines: readonly string[], permitted: ReadonlySet<Declared>): BoxState {
  const by = lines.find((one) => covers(one, line) && !covers(line, one));
  if (by !== undefined) return { kind: 'covered', by };
  if (lines.some((one) => isSame(one, line))) return { kind: 'on' };
  const isPartly = requests.some((one) => permitted.has(one)) || lines.some((one) => covers(line, one));
  return { kind: isPartly ? 'partly' : 'off' };
}

/**
 * The lines after the box was switched on or off. All others keep their order, and a stored line comes back to its place, as it was
 * written.
 */
export function toggle({ line }: Box, lines: readonly string[], stored: readonly string[]): string[] {
  const isOwn = (one: string): boolean => isSame(one, line);
  const others = lines.filter((one) => !isOwn(one));
  if (others.length < lines.length) return others;
  if (!stored.some(isOwn)) return [...lines, line];
  const restored = stored.flatMap((one) => {
    if (isOwn(one)) return [one];
    return one === others[0] ? others.splice(0, 1) : [];
  });
  return [...restored, ...others];
}

/** The lines that no box stands for. */
export function otherLines(lines: readonly string[], grid: Grid): string[] {
  const boxes = boxesOf(grid);
  return lines.filter((one) => !boxes.some(({ line }) => isSame(one, line)));
}

/** What a change of lines permits, or does not permit any more. */
export interface Effect {
  readonly requests: ReadonlySet<Declared>;
  /** Those of single objects, and of what is not declared. */
  readonly lines: readonly string[];
}

/** What `after` permits that `before` does not. */
export function gained(before: readonly string[], after: readonly string[], { requests }: Grid): Effect {
  const permitted = permittedBy(before, requests);
  return {
    requests: new Set([...permittedBy(after, requests)].filter((one) => !permitted.has(one))),
    lines: after.filter(
      (line) => !before.some((one) => covers(one, line)) && !requests.some((one) => covers(line, one.line)),
    ),
  };
}
