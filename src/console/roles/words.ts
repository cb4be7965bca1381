/** What boxes and changes of a role permit, in words. */
import { hasText, type TextKey, t } from '../text/language.js';
import { type Column, type Effect, type Grid, METHODS, type Method, type Row, storeOf } from './grid.js';

/** `all` is every method. */
export const nameOfColumn = (column: Column): 'all' | Method => (column === '*' ? 'all' : column);

/** How many names a phrase has at most. */
const MOST_NAMES = 8;

const isBelow = ({ path }: Row): boolean => path !== '/' && path !== `/${storeOf(path)}`;

/** What a row is called in texts: by its own name, or by what many stores have. */
function namesOf(row: Row): string[] {
  const own = row.name === null ? [] : [row.name];
  return isBelow(row) ? [...own, `any.${row.path.split('/').at(-1)}`] : own;
}

/** The text of a row of this kind; null if it has none. */
function keyOf(kind: string, row: Row): TextKey | null {
  const keys = namesOf(row).map((one) => `roles.${kind}.${one}`);
  return (keys.find(hasText) as TextKey | undefined) ?? null;
}

function textOf(kind: string, row: Row): string | null {
  const key = keyOf(kind, row);
  return key && t(key, { what: nameOfStore(row) });
}

function nameOfStore({ name, path }: Row): string {
  const store = storeOf(path);
  const key = `roles.of.${store}`;
  return name !== null && hasText(key) ? t(key as TextKey) : store;
}

/** What the row is about. */
export const nounOf = (row: Row): string =>
  textOf('of', row) ?? (isBelow(row) ? (textOf('POST', row) ?? row.path) : nameOfStore(row));

/** What the box permits. */
export function phraseOf(row: Row, column: Column): string {
  const name = nameOfColumn(column);
  return textOf(name, row) ?? t(`roles.${name}`, { what: nounOf(row) });
}

/** What a change permits, or does not permit any more; single lines where there are no words for them. */
export function phrasesOf({ requests, lines }: Effect, grid: Grid): string[] {
  const [everything, ...stores] = grid.rows;
  const phrases = METHODS.flatMap((method) => {
    const whole = everything?.boxes[method];
    const isWhole = whole?.requests.every((one) => requests.has(one)) ?? false;
    const changed = [...requests].filter((one) => one.method === method && !(isWhole && whole?.requests.includes(one)));
    const paths = new Set(changed.map(({ row }) => row));
    const rows = stores.flatMap((store) => rowsIn(store, paths, method));
    return [...(everything && isWhole ? [phraseOf(everything, method)] : []), ...phrasesOfRows(rows, method)];
  });
  return [...phrases, ...lines];
}

/** What the line of a store permits includes most of what is below it, except for POST. */
function rowsIn(store: Row, paths: ReadonlySet<string>, method: Method): Row[] {
  const below = store.below.filter(({ path }) => paths.has(path));
  if (!paths.has(store.path)) return below;
  return method === 'POST' ? [store, ...below] : [store];
}

/** One phrase for all rows that have the same text: `share objects, models`. */
function phrasesOfRows(rows: readonly Row[], method: Method): string[] {
  const byText = new Map<TextKey, string[]>();
  for (const row of rows) {
    const own = keyOf(method, row);
    const key = own ?? (`roles.${method}` as const);
    byText.set(key, [...(byText.get(key) ?? []), own === null ? nounOf(row) : nameOfStore(row)]);
  }
  return [...byText].map(([key, names]) => t(key, { what: toList(names) }));
}

function toList(names: readonly string[]): string {
  const more = names.length - MOST_NAMES;
  return names.slice(0, MOST_NAMES).join(', ') + (more > 0 ? ` ${t('roles.more', { count: more })}` : '');
}
