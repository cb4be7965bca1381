/** Whole days in the time zone of the reader. */

export interface IntervalMs {
  readonly fromMs: number;
  readonly toMs: number;
}

export type Days = 'today' | 'yesterday' | 'week';

/** Up to the last millisecond of the day or of the week. Weeks begin with `firstDay`: 0 is Sunday. */
export function daysAt(nowMs: number, days: Days, firstDay: number): IntervalMs {
  const now = new Date(nowMs);
  // Days in which clocks change have 23 or 25 hours.
  const midnight = (offset: number): number =>
    new Date(now.getFullYear(), now.getMonth(), now.getDate() + offset).getTime();
  const daysSinceFirst = (now.getDay() - firstDay + 7) % 7;
  const [from, to] = {
    today: [0, 1],
    yesterday: [-1, 0],
    week: [-daysSinceFirst, 7 - daysSinceFirst],
  }[days] as [number, number];
  return { fromMs: midnight(from), toMs: midnight(to) - 1 };
}

/** The same hour a week before: where it was changed since, the week has an hour more or less. */
export function weekBefore(ms: number): number {
  const date = new Date(ms);
  date.setDate(date.getDate() - 7);
  return date.getTime();
}
