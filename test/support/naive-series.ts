/** Series as their definition says them, bucket by bucket over all values: what the service is held to. */

export type SeriesValue = number | boolean | string | null | undefined | object;

/** A packet's time and what it has of one parameter. */
export type Reading = readonly [timeMs: number, value: SeriesValue];

export interface NaiveQuery {
  readonly fromMs: number;
  readonly toMs: number;
  readonly starts: readonly number[];
  readonly gapMs: number | null;
  readonly nowMs: number;
  readonly counterBits?: number | null;
}

interface Span {
  readonly fromMs: number;
  readonly toMs: number;
  readonly value: SeriesValue;
}

type Values = readonly (number | null)[];

/** What a function gives for each bucket; null where the parameter has no value at all. */
export function naiveSeries(readings: readonly Reading[], query: NaiveQuery, name: string): Values | null {
  const { fromMs, toMs, starts, gapMs, nowMs, counterBits = null } = query;
  const valid = readings.filter(([, value]) => value !== null && value !== undefined);
  const before = gapMs === null ? undefined : valid.filter(([at]) => at < fromMs && at > fromMs - gapMs).at(-1);
  const within = valid.filter(([at]) => at >= fromMs && at <= toMs);
  const known = before === undefined ? within : [before, ...within];
  if (known.length === 0) return null;
  const spans = known.map(([at, value], nth): Span => {
    const nextMs = known[nth + 1]?.[0] ?? Number.POSITIVE_INFINITY;
    return { fromMs: at, toMs: Math.min(nextMs, at + (gapMs ?? Number.POSITIVE_INFINITY), nowMs, toMs + 1), value };
  });
  return starts.map((start, nth) => {
    const low = Math.max(start, fromMs);
    const high = Math.min(starts[nth + 1] ?? toMs + 1, toMs + 1);
    return ofBucket({ known, spans, low, high, gapMs, counterBits, nowMs: Math.min(nowMs, toMs + 1) }, name);
  });
}

interface Bucket {
  readonly known: readonly Reading[];
  readonly spans: readonly Span[];
  readonly low: number;
  readonly high: number;
  readonly gapMs: number | null;
  readonly counterBits: number | null;
  readonly nowMs: number;
}

const toNumber = (value: SeriesValue): number =>
  typeof value === 'number' ? value : typeof value === 'boolean' ? Number(value) : Number.NaN;

function ofBucket(bucket: Bucket, name: string): number | null {
  const { known, low, high, gapMs } = bucket;
  const inside = known.filter(([at]) => at >= low && at < high);
  if (name === 'count') return inside.length;
  if (name === 'time-weighted-avg' || name.startsWith('duration')) return ofSpans(bucket, name);
  if (name === 'increase' || name === 'rate' || name === 'derivative') return changeOf(bucket, name);
  const numbers = inside.map(([, value]) => toNumber(value)).filter((value) => !Number.isNaN(value));
  if (name === 'sum') return numbers.length === 0 ? null : numbers.reduce((sum, one) => sum + one, 0);
  if (numbers.length === 0) {
    const last = known.filter(([at]) => at < low).at(-1);
    const holds = last !== undefined && gapMs !== null && low - last[0] < gapMs && low < bucket.nowMs;
    const held = holds && inside.length === 0 ? toNumber(last[1]) : Number.NaN;
    return Number.isNaN(held) ? null : held;
  }
  const sorted = [...numbers].sort((a, b) => a - b);
  if (name === 'first') return numbers[0] as number;
  if (name === 'last') return numbers.at(-1) as number;
  if (name === 'min') return sorted[0] as number;
  if (name === 'max') return sorted.at(-1) as number;
  if (name === 'avg') return numbers.reduce((sum, one) => sum + one, 0) / numbers.length;
  return percentileOf(sorted, Number(name.slice(1)) / 100);
}

function percentileOf(sorted: readonly number[], share: number): number {
  const place = (sorted.length - 1) * share;
  const low = Math.floor(place);
  const part = place % 1;
  const below = sorted[low] as number;
  return part === 0 ? below : below + part * ((sorted[low + 1] as number) - below);
}

function changeOf({ known, low, high, gapMs, counterBits }: Bucket, name: string): number | null {
  let pairs = 0;
  let change = 0;
  let ms = 0;
  for (const [nth, [at, value]] of known.entries()) {
    const before = known[nth - 1];
    if (before === undefined || at < low || at >= high) continue;
    const to = toNumber(value);
    const from = toNumber(before[1]);
    const difference = to - from;
    if (Number.isNaN(difference) || (gapMs !== null && at - before[0] > gapMs)) continue;
    pairs++;
    const hasWrapped = counterBits !== null && from < 2 ** counterBits && to >= 0;
    if (difference >= 0 || name === 'derivative') change += difference;
    else change += hasWrapped ? 2 ** counterBits - from + to : Math.max(to, 0);
    ms += at - before[0];
  }
  if (name === 'increase') return pairs === 0 ? null : change;
  return ms === 0 ? null : (change / ms) * 1_000;
}

function ofSpans({ spans, low, high }: Bucket, name: string): number | null {
  const parts = spans
    .map(({ fromMs, toMs, value }) => ({ ms: Math.min(toMs, high) - Math.max(fromMs, low), value }))
    .filter(({ ms }) => ms > 0);
  const total = (some: typeof parts): number => some.reduce((sum, { ms }) => sum + ms, 0);
  if (name !== 'time-weighted-avg') {
    const wanted = name.slice('duration:'.length);
    const isWanted = (value: SeriesValue): boolean => {
      if (wanted === '') return toNumber(value) !== 0 && !Number.isNaN(toNumber(value));
      if (typeof value === 'string') return value === wanted;
      const meant = { true: 1, false: 0 }[wanted] ?? Number.parseFloat(wanted);
      return toNumber(value) === meant;
    };
    return parts.length === 0 ? null : total(parts.filter(({ value }) => isWanted(value)));
  }
  const numbers = parts.filter(({ value }) => !Number.isNaN(toNumber(value)));
  const weighted = numbers.reduce((sum, { ms, value }) => sum + toNumber(value) * ms, 0);
  return numbers.length === 0 ? null : weighted / total(numbers);
}
