/** Since when an object is in a geofence, as far as its last fixes tell. Pure. */
import type { Position } from '../../core/position-fields.js';

export interface TimedFix extends Position {
  readonly timeMs: number;
}

export interface Since {
  readonly timeMs: number;
  /** Whether it may have come earlier, in fixes that are not among these. */
  readonly isAtLeast: boolean;
}

/** Adds a fix in the order of times, which packets that come late have, too; at most `most` of them, the newest. */
export function addFix(fixes: readonly TimedFix[], fix: TimedFix, most: number): readonly TimedFix[] {
  const before = fixes.findLastIndex(({ timeMs }) => timeMs <= fix.timeMs);
  if (fixes[before]?.timeMs === fix.timeMs) return fixes;
  return [...fixes.slice(0, before + 1), fix, ...fixes.slice(before + 1)].slice(-most);
}

/** `fixes` in the order of their times; `isWhole`: they are all that the object ever sent. Null if the last one is outside. */
export function findSince(
  fixes: readonly TimedFix[],
  isInside: (fix: TimedFix) => boolean,
  isWhole: boolean,
): Since | null {
  const outside = fixes.findLastIndex((fix) => !isInside(fix));
  const first = fixes[outside + 1];
  return first === undefined ? null : { timeMs: first.timeMs, isAtLeast: outside === -1 && !isWhole };
}
