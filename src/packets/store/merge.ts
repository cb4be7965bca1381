/**
 * Merges packets out of several sources into one order. Pure: a source is anything that gives runs of packets, and a run need not be read
 * to know that others come before it.
 */
import type { PlaceInOrder } from '../../core/packet-order.js';

/** Packets in memory, in the order in which they are read. */
export interface OpenRun {
  readonly memory: Buffer;
  /** Where each packet begins. */
  readonly starts: ArrayLike<number>;
  readonly times: ArrayLike<number>;
  readonly stamps: ArrayLike<number>;
}

/** Packets of a source that follow each other. */
export interface Run<Whole = never> {
  /** None of its packets comes before this place. */
  readonly first: PlaceInOrder;
  /** What is given instead of its packets, if those of all other sources come before it, or behind the place of its last one. */
  readonly whole?: { readonly last: PlaceInOrder; readonly given: Whole };
  /** Reads it, once: maybe no packets. The next run is asked for after the last packet of this one. */
  readonly open: () => Promise<OpenRun>;
}

/** The packets of a run from one to before another. */
export interface Segment {
  readonly run: OpenRun;
  readonly from: number;
  readonly to: number;
}

interface Head<Whole> {
  readonly rank: number;
  readonly source: AsyncGenerator<Run<Whole>>;
  sealed: Run<Whole> | null;
  run: OpenRun | null;
  next: number;
  timeMs: number;
  stampUs: number;
}

/** Of packets of equal times and stamps, those of an earlier source come first. Closes the sources at the end. */
export async function* mergeRuns<Whole = never>(
  sources: readonly AsyncGenerator<Run<Whole>>[],
  isDescending: boolean,
): AsyncGenerator<Segment | Whole> {
  const heads: Head<Whole>[] = sources.map((source, rank) => ({
    rank,
    source,
    sealed: null,
    run: null,
    next: 0,
    timeMs: 0,
    stampUs: 0,
  }));
  const sign = isDescending ? -1 : 1;
  try {
    let left: Head<Whole>[] = [];
    for (const head of heads) if (await advance(head)) left.push(head);
    while (left.length > 0) {
      const [best, second] = firstTwo(left, sign);
      if (best.run === null) {
        const { whole } = best.sealed as Run<Whole>;
        if (whole !== undefined && (second === null || sign * comparePlaces(whole.last, second) < 0)) {
          yield whole.given;
          if (!(await advance(best))) left = left.filter((head) => head !== best);
        } else if (!(await open(best))) left = left.filter((head) => head !== best);
        continue;
      }
      const from = best.next;
      const to = second === null ? best.run.starts.length : endBefore(best, second, sign);
      yield { run: best.run, from, to };
      best.next = to;
      if (to < best.run.starts.length) setPlace(best);
      else if (!(await advance(best))) left = left.filter((head) => head !== best);
    }
  } finally {
    for (const { source } of heads) await source.return(undefined);
  }
}

/** Goes on to the next run; false after the last one. */
async function advance<Whole>(head: Head<Whole>): Promise<boolean> {
  const { value, done } = await head.source.next();
  if (done) return false;
  head.sealed = value;
  head.run = null;
  head.timeMs = value.first.timeMs;
  head.stampUs = value.first.stampUs;
  return true;
}

/** Reads the run at the head; false if there are no more packets. */
async function open<Whole>(head: Head<Whole>): Promise<boolean> {
  head.run = await (head.sealed as Run<Whole>).open();
  head.sealed = null;
  head.next = 0;
  if (head.run.starts.length === 0) return advance(head);
  setPlace(head);
  return true;
}

function setPlace<Whole>(head: Head<Whole>): void {
  const { times, stamps } = head.run as OpenRun;
  head.timeMs = times[head.next] as number;
  head.stampUs = stamps[head.next] as number;
}

/** Infinite times have no difference. */
const compareNumbers = (one: number, other: number): number => (one < other ? -1 : Number(one > other));

export const comparePlaces = (one: PlaceInOrder, other: PlaceInOrder): number =>
  compareNumbers(one.timeMs, other.timeMs) || compareNumbers(one.stampUs, other.stampUs);

const isBefore = <Whole>(one: Head<Whole>, other: Head<Whole>, sign: number): boolean =>
  (sign * comparePlaces(one, other) || one.rank - other.rank) < 0;

function firstTwo<Whole>(heads: readonly Head<Whole>[], sign: number): [Head<Whole>, Head<Whole> | null] {
  let best = heads[0] as Head<Whole>;
  let second: Head<Whole> | null = null;
  for (let nth = 1; nth < heads.length; nth++) {
    const head = heads[nth] as Head<Whole>;
    if (isBefore(head, best, sign)) {
      second = best;
      best = head;
    } else if (second === null || isBefore(head, second, sign)) second = head;
  }
  return [best, second];
}

/** Where the packets at the head end that come before those of another source: at least one does. */
function endBefore<Whole>(head: Head<Whole>, other: Head<Whole>, sign: number): number {
  const { times, stamps } = head.run as OpenRun;
  const tie = head.rank < other.rank ? 0 : -1;
  let to = head.next + 1;
  for (; to < times.length; to++) {
    const place = { timeMs: times[to] as number, stampUs: stamps[to] as number };
    if (sign * comparePlaces(place, other) > tie) break;
  }
  return to;
}
