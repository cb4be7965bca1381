/** Rows and buckets of one order are merged as if all of them had been sorted together, and no run is read too early. */
import { expect, test } from '@jest/globals';
import { mergeRuns, type OpenRun, type Run } from '../../../src/packets/store/merge.js';
import { fc, runsOf } from '../../support/runs.js';

interface Item {
  readonly timeMs: number;
  readonly stampUs: number;
  readonly name: string;
}

/** Few times, so that many are equal; some of rows of foreign writers are no numbers, which are infinite here. */
const places = fc.record({
  timeMs: fc.oneof(
    { weight: 9, arbitrary: fc.integer({ min: 0, max: 9 }) },
    fc.constantFrom(Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY),
  ),
  stampUs: fc.integer({ min: 0, max: 3 }),
});

/** Each source is cut into runs; how far a run's bound lies before its first packet, and whether it has empty ones between. */
const cases = fc.record({
  sources: fc.array(
    fc.record({
      places: fc.array(places, { maxLength: 30 }),
      cut: fc.integer({ min: 1, max: 7 }),
      early: fc.nat({ max: 2 }),
    }),
    { maxLength: 5 },
  ),
  isDescending: fc.boolean(),
  /** After how many packets the reader leaves. */
  leavesAfter: fc.option(fc.nat({ max: 60 })),
});

const compareNumbers = (one: number, other: number): number => (one < other ? -1 : Number(one > other));

function itemsOf(source: readonly { timeMs: number; stampUs: number }[], nth: number, isDescending: boolean): Item[] {
  const sign = isDescending ? -1 : 1;
  return source
    .map((place, index) => ({ ...place, name: `${nth}/${index}` }))
    .sort((a, b) => sign * (compareNumbers(a.timeMs, b.timeMs) || compareNumbers(a.stampUs, b.stampUs)));
}

interface Watch {
  /** What was merged when a run was opened. */
  readonly opened: { readonly first: Item; readonly merged: number }[];
  merged: number;
  closed: number;
}

async function* runsIn(
  items: readonly Item[],
  { cut, early, isDescending, watch }: { cut: number; early: number; isDescending: boolean; watch: Watch },
): AsyncGenerator<Run> {
  try {
    for (let at = 0; at < items.length; at += cut) {
      const part = items.slice(at, at + cut);
      const [first] = part as [Item];
      const timeMs = first.timeMs + (isDescending ? early : -early);
      yield { first: { timeMs, stampUs: first.stampUs }, open: async () => open(part, watch) };
      yield { first, open: async () => open([], watch) };
    }
  } finally {
    watch.closed++;
  }
}

function open(part: readonly Item[], watch: Watch): OpenRun {
  if (part[0] !== undefined) watch.opened.push({ first: part[0], merged: watch.merged });
  const memory = Buffer.from(JSON.stringify(part.map(({ name }) => name)));
  return {
    memory,
    starts: part.map((_, index) => index),
    times: part.map(({ timeMs }) => timeMs),
    stamps: part.map(({ stampUs }) => stampUs),
  };
}

test('merges what it would get by sorting everything', async () => {
  await fc.assert(
    fc.asyncProperty(cases, async ({ sources, isDescending, leavesAfter }) => {
      const items = sources.map((source, nth) => itemsOf(source.places, nth, isDescending));
      const sign = isDescending ? -1 : 1;
      // Sorting is stable: of equal ones, the earlier source comes first.
      const sorted = items
        .flat()
        .sort((a, b) => sign * (compareNumbers(a.timeMs, b.timeMs) || compareNumbers(a.stampUs, b.stampUs)));
      const watch: Watch = { opened: [], merged: 0, closed: 0 };
      const generators = items.map((some, nth) =>
        runsIn(some, { ...(sources[nth] as { cut: number; early: number }), isDescending, watch }),
      );
      const merged: string[] = [];
      for await (const { run, from, to } of mergeRuns(generators, isDescending)) {
        expect(to).toBeGreaterThan(from);
        const names = JSON.parse(run.memory.toString()) as string[];
        for (let at = from; at < to; at++) merged.push(names[run.starts[at] as number] as string);
        watch.merged = merged.length;
        if (leavesAfter !== null && merged.length >= leavesAfter) break;
      }
      expect(merged).toEqual(sorted.map(({ name }) => name).slice(0, merged.length));
      if (leavesAfter === null) expect(merged).toHaveLength(sorted.length);
      expect(watch.closed).toBe(sources.length);
    }),
    { numRuns: runsOf(5_000) },
  );
});

test('reads a run only when all packets before its bound are merged', async () => {
  const watch: Watch = { opened: [], merged: 0, closed: 0 };
  const at = (timeMs: number): Item => ({ timeMs, stampUs: 0, name: String(timeMs) });
  const old = runsIn([1, 2, 11, 12].map(at), { cut: 2, early: 0, isDescending: false, watch });
  const young = runsIn([3, 4, 5, 6].map(at), { cut: 4, early: 0, isDescending: false, watch });
  for await (const { from, to } of mergeRuns([old, young], false)) watch.merged += to - from;
  expect(watch.opened.map(({ first, merged }) => [first.timeMs, merged])).toEqual([
    [1, 0],
    [3, 2],
    [11, 6],
  ]);
});
