/** The last hours of the values that tiles show: read once for the tiles in view, then continued by live packets. */
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { requestWithoutLogin } from '../state/api.js';
import { serverNowMs } from '../state/clock.js';
import type { FleetObject } from '../state/fleet.js';
import { may } from '../state/session.js';

const SPAN_MS = 6 * 3_600_000;
const POINTS = 48;
/** Of one request. */
const MOST_OBJECTS = 20;
const MOST_KEPT = 1_000;
/** Who scrolls by asks for nothing. */
const REST_MS = 400;

export interface Spark {
  readonly times: number[];
  readonly values: number[];
}

interface Wanted {
  readonly id: string;
  readonly name: string;
}

/** By object and parameter. */
const sparks = new Map<string, Spark>();
const asked = new Set<string>();
/** What each tile shows that is there: one that moves is there twice for a moment. */
const shown = new Map<object, Wanted>();
const readings = signal(0);
/** Whether somebody reads what is missing, or soon will. */
let isReading = false;

const keyOf = ({ id, name }: Wanted): string => `${id} ${name}`;

/** Names with these characters have another meaning in the request. */
const isPlain = (name: string): boolean => !/[",*]/.test(name);

/** The last hours of a parameter; null where they are not known. */
export function useSpark({ _id: id, state }: FleetObject, name: string | undefined): Spark | null {
  const key = name === undefined ? '' : keyOf({ id, name });
  useEffect(() => {
    if (name === undefined || !isPlain(name)) return undefined;
    const tile = {};
    shown.set(tile, { id, name });
    readSoon();
    return () => void shown.delete(tile);
  }, [key]);
  readings.value;
  const spark = sparks.get(key);
  if (spark === undefined || name === undefined) return null;
  const value = state?.[name];
  if (state !== undefined && typeof value === 'number') append(spark, state.time, value);
  return spark;
}

function append({ times, values }: Spark, timeMs: number, value: number): void {
  if (timeMs <= (times.at(-1) ?? 0)) return;
  times.push(timeMs);
  values.push(value);
  while ((times[0] ?? timeMs) < timeMs - SPAN_MS || times.length > 2 * POINTS * 10) {
    times.shift();
    values.shift();
  }
}

function readSoon(): void {
  if (isReading) return;
  isReading = true;
  setTimeout(() => void read().finally(() => (isReading = false)), REST_MS);
}

const isMissing = (one: Wanted): boolean =>
  !asked.has(keyOf(one)) && may('GET', '/series') && may('GET', `/objects/${one.id}/series`);

/** One request after the other, and a pause as long as each took: what is older can wait. */
async function read(): Promise<void> {
  for (;;) {
    const missing = [...shown.values()].filter(isMissing);
    const [first] = missing;
    if (first === undefined) return;
    const ids = new Set(missing.filter(({ name }) => name === first.name).map(({ id }) => id));
    const startMs = performance.now();
    await readSome([...ids].slice(0, MOST_OBJECTS), first.name);
    await new Promise((resolve) => setTimeout(resolve, performance.now() - startMs));
  }
}

async function readSome(ids: readonly string[], name: string): Promise<void> {
  for (const id of ids) asked.add(keyOf({ id, name }));
  const toMs = serverNowMs();
  const query = { objects: ids, params: [name], from: toMs - SPAN_MS, to: toMs, points: POINTS, fn: ['last'] };
  // Without an answer, tiles are there without a line.
  const answer = await requestWithoutLogin('GET /api/v1/series', { query }).catch(() => null);
  if (answer === null) return;
  const { time, objects } = answer as unknown as SeriesAnswer;
  for (const id of ids) {
    // What was silent for hours has no column: its line begins with what it sends next.
    keep(keyOf({ id, name }), toSpark(time, objects[id]?.[name]?.last ?? []));
  }
  readings.value++;
}

interface SeriesAnswer {
  readonly time: readonly number[];
  readonly objects: Readonly<
    Record<string, Readonly<Record<string, { readonly last: readonly (number | null)[] } | null>> | null>
  >;
}

function toSpark(time: readonly number[], column: readonly (number | null)[]): Spark {
  const spark: Spark = { times: [], values: [] };
  for (const [index, value] of column.entries()) if (value !== null) append(spark, time[index] ?? 0, value);
  return spark;
}

function keep(key: string, spark: Spark): void {
  sparks.set(key, spark);
  for (const [oldest] of sparks) {
    if (sparks.size <= MOST_KEPT) return;
    sparks.delete(oldest);
    asked.delete(oldest);
  }
}

const WIDTH = 100;
const HEIGHT = 28;

/** The line in a box of 100 by 28; null of less than two points. */
export function pathOf({ times, values }: Spark): string | null {
  const [fromMs] = times;
  const toMs = times.at(-1);
  if (fromMs === undefined || toMs === undefined || times.length < 2) return null;
  const least = Math.min(...values);
  const span = Math.max(...values) - least;
  const points = values.map((value, index) => {
    const x = (((times[index] ?? toMs) - fromMs) / (toMs - fromMs)) * WIDTH;
    const y = span === 0 ? HEIGHT / 2 : HEIGHT - 2 - ((value - least) / span) * (HEIGHT - 4);
    return `${x.toFixed(1)} ${y.toFixed(1)}`;
  });
  return `M${points.join('L')}`;
}
