/** The functions of series by name: each computes one number from the values of a bucket. Pure. */

/** A function of the values in the bucket, or of how long each held. */
const PLAIN = [
  'first',
  'last',
  'min',
  'max',
  'avg',
  'sum',
  'count',
  'time-weighted-avg',
  'increase',
  'rate',
  'derivative',
] as const;
const MINMAX = ['first', 'last', 'min', 'max'] as const;

export type SeriesFunction =
  | { readonly kind: (typeof PLAIN)[number]; readonly name: string }
  | { readonly kind: 'percentile'; readonly name: string; readonly share: number }
  /** How long the value was equal to this one; `null`: true, or another number than 0. */
  | { readonly kind: 'duration'; readonly name: string; readonly wanted: string | null };

/** The names of functions without an argument, for error messages. */
export const FUNCTION_NAMES: readonly string[] = ['minmax', ...PLAIN, 'p1 to p99', 'duration', 'duration:<value>'];

/** The functions of a name (`minmax` has several); null for an unknown name. */
export function parseFunction(text: string): readonly SeriesFunction[] | null {
  const name = text.trim();
  if (name === 'minmax') return MINMAX.map((kind) => ({ kind, name: kind }));
  const plain = PLAIN.find((kind) => kind === name || kind === name.replace(' ', '-'));
  if (plain !== undefined) return [{ kind: plain, name: plain }];
  const [, percent] = /^p([1-9]\d?)$/.exec(name) ?? [];
  if (percent !== undefined) return [{ kind: 'percentile', name, share: Number(percent) / 100 }];
  const duration = /^duration(?::(.{1,128}))?$/su.exec(name);
  return duration === null ? null : [{ kind: 'duration', name, wanted: duration[1] ?? null }];
}

/** Whether the duration of this value is counted. Text is compared with numbers and booleans in their written form. */
export function isWanted(wanted: string | null, value: number, text: string | null): boolean {
  if (wanted === null) return text === null && value !== 0;
  if (text !== null) return text === wanted;
  if (wanted === 'true') return value === 1;
  if (wanted === 'false') return value === 0;
  return wanted.trim() !== '' && Number(wanted) === value;
}

/** Whether it depends on how long values held. */
export const tracksTime = ({ kind }: SeriesFunction): boolean => kind === 'time-weighted-avg' || kind === 'duration';

/** Whether it can be told from the statistics of values: their number and sum, and the least, greatest, first and last one. */
export const isOfStatistics = ({ kind }: SeriesFunction): boolean => OF_STATISTICS.has(kind);
const OF_STATISTICS: ReadonlySet<SeriesFunction['kind']> = new Set([...MINMAX, 'avg', 'sum', 'count']);
