/** Which charts show the series: one with a scale for each of at most two units, one for each unit, or one for each series. Pure. */
import type { IntervalMs } from '../objects/days.js';
import { type Buckets, type Line, toLine } from './buckets.js';
import type { SeriesName } from './names.js';

export interface SeriesState extends SeriesName {
  /** In the address. */
  readonly key: string;
  /** Its place among the series, which has a color. */
  readonly number: number;
  /** Where its history is. */
  readonly path: string;
  readonly isGone: boolean;
  readonly isLoading: boolean;
  readonly error: unknown;
  /** Null where there is nothing to draw. */
  readonly buckets: Buckets | null;
}

export interface ShownSeries extends SeriesState {
  readonly line: Line | null;
}

export const withLine = (state: SeriesState): ShownSeries => ({
  ...state,
  line: state.buckets === null ? null : toLine(state.buckets),
});

const MOST_SCALES = 2;

export interface Chart {
  readonly key: string;
  readonly series: readonly ShownSeries[];
  /** The units of its scales, the left one first. */
  readonly units: readonly string[];
}

export function chartsOf(series: readonly ShownSeries[], isBelow: boolean): Chart[] {
  const units = [...new Set(series.map(({ unit }) => unit))];
  if (isBelow) return series.map((one) => ({ key: one.key, series: [one], units: [one.unit] }));
  if (units.length <= MOST_SCALES) return [{ key: 'all', series, units }];
  return units.map((unit) => ({
    key: `unit ${unit}`,
    series: series.filter((one) => one.unit === unit),
    units: [unit],
  }));
}

/** The points that the charts have in common; none before anything was read. */
export const startsOf = (series: readonly ShownSeries[]): readonly number[] =>
  series.find(({ buckets }) => buckets !== null)?.buckets?.starts ?? [];

/** What spreadsheets get: a row for each point with a number, with the last number of each series. */
export function rowsOf(series: readonly ShownSeries[], titleOfTime: string): (string | number | null)[][] {
  const starts = startsOf(series);
  const head = series.map(({ name, label, unit }) => `${name} · ${label}${unit === '' ? '' : ` (${unit})`}`);
  const rows = starts.map((ms, at) => [
    new Date(ms).toISOString(),
    ...series.map(({ buckets }) => buckets?.last[at] ?? null),
  ]);
  return [[titleOfTime, ...head], ...rows.filter((row) => row.slice(1).some((cell) => cell !== null))];
}

export const isSame = (one: IntervalMs, other: IntervalMs): boolean =>
  one.fromMs === other.fromMs && one.toMs === other.toMs;
