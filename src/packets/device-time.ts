/** Judges the times that devices give their packets, since a clock may have been reset. Pure. */
import { DAY_MS } from '../core/units.js';

/** 2000-01-01: clocks that lost their time begin in 1970, 1980 or 1999. */
const FIRST_MS = Date.UTC(2000, 0, 1);
/** A clock that is further ahead was reset to a date in the future, such as 2080. */
const RUNNING_AHEAD_MS = 365 * DAY_MS;

/** The time of a message. A null `timeMs` means the server's time. */
export interface MessageTime {
  readonly timeMs: number | null;
  /** What a wrong clock said instead. */
  readonly deviceTimeMs: number | undefined;
}

/** Keeps a time that can be right; `aheadMs`: how far it may be ahead of `nowMs`. */
export function judgeTime(timeMs: number | null, nowMs: number, aheadMs: number): MessageTime {
  if (timeMs === null || (timeMs >= FIRST_MS && timeMs <= nowMs + aheadMs)) return { timeMs, deviceTimeMs: undefined };
  return { timeMs: null, deviceTimeMs: timeMs };
}

/**
 * The time by which a packet is identified when it comes again. That of a clock that is ahead counts whatever was judged: the
 * next judgement, with a later `nowMs`, may be another. Null for clocks that were reset, which repeat their times.
 */
export function identifyingMs(
  { timeMs, deviceTimeMs }: Pick<MessageTime, 'timeMs'> & Partial<MessageTime>,
  nowMs: number,
): number | null {
  if (deviceTimeMs === undefined) return timeMs;
  return deviceTimeMs >= FIRST_MS && deviceTimeMs <= nowMs + RUNNING_AHEAD_MS ? deviceTimeMs : null;
}
