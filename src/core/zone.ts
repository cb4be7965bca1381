/** Time zones: how far local clocks are ahead of UTC, and which instant a local time is. Pure. */
import { DAY_MS, HOUR_MS } from './units.js';

/** Offsets that are equal at both ends of such a span are equal within it: no zone has changed its clocks twice in a week. */
const SPAN_MS = 7 * DAY_MS;
/** What `Date` can hold. */
const FAR_MS = 8.64e15;

export interface Zone {
  /** How far the local clock is ahead of UTC at the instant. */
  offsetMs(atMs: number): number;
  /** The first instant at which the local clock shows this time or, where it is skipped, a later one. `localMs`: as if it were UTC. */
  toInstant(localMs: number): number;
  /** The first instant after `fromMs`, and no later than `toMs`, with another offset than `fromMs`; null where there is none. */
  findChange(fromMs: number, toMs: number): number | null;
}

const UTC: Zone = { offsetMs: () => 0, toInstant: (localMs) => localMs, findChange: () => null };

/** The zone of this name (IANA); null where there is none. */
export function findZone(name: string): Zone | null {
  if (/^(?:utc|gmt|z|etc\/utc)$/i.test(name)) return UTC;
  // Others than names, such as offsets, are known to some versions of Node.js only.
  if (!/^[a-z][\w+/-]{1,63}$/i.test(name)) return null;
  try {
    return createZone(new Intl.DateTimeFormat('en-US', { timeZone: name, timeZoneName: 'longOffset' }));
  } catch {
    return null;
  }
}

function createZone(format: Intl.DateTimeFormat): Zone {
  const known = new Map<number, number>();
  const read = (atMs: number): number => parseOffset(format.format(Math.min(FAR_MS, Math.max(-FAR_MS, atMs))));
  /** At the ends of spans, which are asked for again and again. */
  const readEnd = (span: number): number => {
    const found = known.get(span) ?? read(span * SPAN_MS);
    known.set(span, found);
    return found;
  };
  const offsetMs = (atMs: number): number => {
    const span = Math.floor(atMs / SPAN_MS);
    const before = readEnd(span);
    return before === readEnd(span + 1) ? before : read(atMs);
  };
  const findChange = (fromMs: number, toMs: number): number | null => {
    const from = offsetMs(fromMs);
    let high = fromMs;
    for (let low = fromMs; low < toMs; low = high) {
      high = Math.min(toMs, (Math.floor(low / SPAN_MS) + 1) * SPAN_MS);
      if (offsetMs(high) === from) continue;
      while (high - low > 1) {
        const middle = Math.floor((low + high) / 2);
        if (offsetMs(middle) === from) low = middle;
        else high = middle;
      }
      return high;
    }
    return null;
  };
  const toInstant = (localMs: number): number => {
    const before = offsetMs(localMs - DAY_MS);
    const after = offsetMs(localMs + DAY_MS);
    const early = localMs - before;
    const late = localMs - after;
    if (offsetMs(early) === before) return early;
    if (offsetMs(late) === after) return late;
    // The clock skips this time.
    return findChange(late, early) ?? early;
  };
  return { offsetMs, toInstant, findChange };
}

/** `1/1/2026, GMT+05:45`, `GMT`, `GMT-00:44:30`. */
function parseOffset(text: string): number {
  const [, sign, hours, minutes, seconds] = /GMT(?:([+-])(\d{2}):(\d{2})(?::(\d{2}))?)?$/.exec(text) ?? [];
  if (sign === undefined) return 0;
  const size = Number(hours) * HOUR_MS + Number(minutes) * 60_000 + Number(seconds ?? 0) * 1_000;
  return sign === '-' ? -size : size;
}
