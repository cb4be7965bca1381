/** The series that are compared: read once for an interval, each object by itself, and continued by live packets. */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { IntervalMs } from '../objects/days.js';
import { numberAt } from '../objects/numbers.js';
import { request } from '../state/api.js';
import { findObject } from '../state/by-name.js';
import { onPacket, type Packet } from '../state/fleet.js';
import { interruptions } from '../state/live.js';
import { addNumber, type Buckets, type Columns, toBuckets } from './buckets.js';
import { nameOfSeries, POINTS, type SeriesKey } from './compared.js';

/** Packets that come together are shown together. */
const SHOW_MS = 1_000;
const FUNCTIONS = ['last', 'min', 'max', 'sum', 'avg', 'count'];

/** What is known of one series. */
export interface Loaded {
  /** Of which interval and state of the object it was read. */
  readonly stamp: string;
  readonly interval: IntervalMs;
  /** Null if it could not be read. */
  readonly buckets: Buckets | null;
  readonly error: unknown;
}

export interface ManySeries {
  readonly loaded: ReadonlyMap<string, Loaded>;
  /** Counts what live packets have added. */
  readonly revision: number;
}

export function useManySeries(series: readonly SeriesKey[], interval: IntervalMs): ManySeries {
  const loaded = useSignal<ReadonlyMap<string, Loaded>>(new Map());
  const revision = useSignal(0);
  // Packets that were removed go, and those that were missed come.
  const stampOf = ({ object }: SeriesKey): string =>
    [interval.fromMs, interval.toMs, interruptions.value, findObject(object)?.packetsRemoved].join();
  const stamps = series.map((one) => `${nameOfSeries(one)} ${stampOf(one)}`).join('\n');
  const wanted = useRef(new Map<string, string>());
  useEffect(() => {
    wanted.current = new Map(series.map((one) => [nameOfSeries(one), stampOf(one)]));
    const isWanted = ([name, { stamp }]: readonly [string, Loaded]): boolean => wanted.current.get(name) === stamp;
    const known = new Map([...loaded.peek()].filter(isWanted));
    const missing = series.filter((one) => !known.has(nameOfSeries(one)));
    const take = (found: readonly (readonly [string, Loaded])[]): void => {
      const present = [...loaded.peek()].filter(([name]) => wanted.current.has(name));
      loaded.value = new Map([...present, ...found.filter(isWanted)]);
    };
    take([]);
    for (const ofObject of byObject(missing)) {
      const stamp = stampOf(ofObject[0] as SeriesKey);
      void readSeries(ofObject, interval, stamp).then(take);
    }
  }, [stamps]);
  useLivePackets(loaded, series, () => {
    revision.value++;
  });
  return { loaded: loaded.value, revision: revision.value };
}

function byObject(series: readonly SeriesKey[]): SeriesKey[][] {
  const found = new Map<string, SeriesKey[]>();
  for (const one of series) found.set(one.object, [...(found.get(one.object) ?? []), one]);
  return [...found.values()];
}

/** Adds what comes live, also while a series is read: its answer may lack it. */
function useLivePackets(
  loaded: { peek(): ReadonlyMap<string, Loaded> },
  series: readonly SeriesKey[],
  onAdded: () => void,
): void {
  const timer = useRef<number | undefined>(undefined);
  const following = useRef(series);
  following.current = series;
  useEffect(() => {
    const stop = onPacket((packet) => {
      let isAdded = false;
      for (const one of following.current) {
        if (findObject(one.object)?._id !== packet._oid) continue;
        const { buckets = null, interval } = loaded.peek().get(nameOfSeries(one)) ?? {};
        if (buckets !== null && interval !== undefined)
          isAdded = addPacket(buckets, interval, packet, one.path) || isAdded;
      }
      if (!isAdded || timer.current !== undefined) return;
      timer.current = setTimeout(() => {
        timer.current = undefined;
        onAdded();
      }, SHOW_MS);
    });
    return () => {
      stop();
      clearTimeout(timer.current);
      timer.current = undefined;
    };
  }, []);
}

function addPacket(buckets: Buckets, { toMs }: IntervalMs, packet: Packet, path: string): boolean {
  const value = numberAt(packet, path);
  return value !== null && addNumber(buckets, toMs, { timeMs: packet.time, value });
}

/** All of one object. What came live meanwhile is added, although the answer may have it: that counts in the average alone. */
async function readSeries(
  series: readonly SeriesKey[],
  interval: IntervalMs,
  stamp: string,
): Promise<(readonly [string, Loaded])[]> {
  const object = (series[0] as SeriesKey).object;
  const meanwhile: Packet[] = [];
  const stop = onPacket((packet) => {
    if (packet._oid === findObject(object)?._id) meanwhile.push(packet);
  });
  const toLoaded = (one: SeriesKey, buckets: Buckets | null, error: unknown): readonly [string, Loaded] => [
    nameOfSeries(one),
    { stamp, interval, buckets, error },
  ];
  try {
    const answer = await request('GET /api/v1/objects/{id}/series', {
      path: { id: object },
      query: {
        params: series.map(({ path }) => path),
        from: new Date(interval.fromMs),
        to: new Date(interval.toMs),
        points: POINTS,
        fn: FUNCTIONS,
      },
    });
    return series.map((one) => {
      const columns = answer[one.path] as unknown as Columns | null | undefined;
      const buckets = toBuckets(answer.time, columns ?? emptyColumns(answer.time.length));
      for (const packet of meanwhile) addPacket(buckets, interval, packet, one.path);
      return toLoaded(one, buckets, null);
    });
  } catch (error) {
    return series.map((one) => toLoaded(one, null, error));
  } finally {
    stop();
  }
}

function emptyColumns(length: number): Columns {
  const empty = (): null[] => new Array<null>(length).fill(null);
  return { last: empty(), min: empty(), max: empty(), sum: empty(), avg: empty(), count: empty() };
}
