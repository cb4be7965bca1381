/** The intervals of reports by name, as whole days of the reader. Pure. */

export const RANGES = ['today', 'yesterday', 'thisWeek', 'lastWeek', 'thisMonth', 'lastMonth'] as const;
export type Range = (typeof RANGES)[number];

/** The first and the last day: `2026-11-16`. */
export interface DayRange {
  readonly from: string;
  readonly to: string;
}

const two = (value: number): string => String(value).padStart(2, '0');

/** What is not over yet ends today. Weeks begin with `firstDay`: 0 is Sunday. A day of a month beyond its ends is one of its neighbours. */
export function toDayRange(nowMs: number, range: Range, firstDay: number): DayRange {
  const now = new Date(nowMs);
  const day = now.getDate();
  const first = day - ((now.getDay() - firstDay + 7) % 7);
  const textOf = (months: number, date: number): string => {
    const { year, month, dateOf } = partsOf(new Date(now.getFullYear(), now.getMonth() + months, date));
    return `${year}-${two(month)}-${two(dateOf)}`;
  };
  const ranges: Readonly<Record<Range, readonly [string, string]>> = {
    today: [textOf(0, day), textOf(0, day)],
    yesterday: [textOf(0, day - 1), textOf(0, day - 1)],
    thisWeek: [textOf(0, first), textOf(0, day)],
    lastWeek: [textOf(0, first - 7), textOf(0, first - 1)],
    thisMonth: [textOf(0, 1), textOf(0, day)],
    lastMonth: [textOf(-1, 1), textOf(0, 0)],
  };
  const [from, to] = ranges[range];
  return { from, to };
}

const partsOf = (date: Date) => ({ year: date.getFullYear(), month: date.getMonth() + 1, dateOf: date.getDate() });
