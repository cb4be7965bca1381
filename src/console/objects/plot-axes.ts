/** The axes of charts: their texts in the form of the reader's language, and the colors of the page. */
import type uPlot from 'uplot';
import { formOnAxis } from '../text/axis-numbers.js';
import { formatClock, formatDay, formatNumber } from '../text/language.js';

/** The value of a variable of the style sheet. */
export type ColorOf = (name: string) => string;

export function colorNow(): ColorOf {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue(name).trim();
}

const common = (color: ColorOf): uPlot.Axis => ({
  stroke: color('--quiet'),
  font: `11px ${color('--font')}`,
  grid: { stroke: color('--line'), width: 1 },
  ticks: { show: false },
});

export const timeAxis = (color: ColorOf): uPlot.Axis => ({
  ...common(color),
  size: 30,
  space: 80,
  values: (_plot, times, _axis, _space, step) => toTimes(times, step),
});

export const numberAxis = (color: ColorOf): uPlot.Axis => ({
  ...common(color),
  size: (_plot, texts) => toWidthPx(texts),
  values: (_plot, values) => toNumbers(values),
});

/** The marks that are shown; uPlot leaves some out. */
function toNumbers(marks: readonly (number | null)[]): string[] {
  const form = formOnAxis(marks.filter((mark) => mark !== null));
  return marks.map((mark) => (mark === null ? '' : formatNumber(mark, form)));
}

/** The same for all charts with usual numbers, so that their times lie below each other. */
const LEAST_AXIS_PX = 52;
const DIGIT_PX = 7;

const toWidthPx = (texts: readonly string[] | null): number =>
  Math.max(LEAST_AXIS_PX, ...(texts ?? []).map(({ length }) => length * DIGIT_PX + 10));

const DAY_S = 86_400;

/** In the form of the user's language; the date where a day begins. */
function toTimes(times: readonly number[], stepS: number): string[] {
  let before = '';
  return times.map((second) => {
    const date = formatDay(second * 1_000);
    const isNewDay = before !== '' && date !== before;
    before = date;
    return isNewDay || stepS >= DAY_S ? date : formatClock(second * 1_000, stepS < 60);
  });
}
