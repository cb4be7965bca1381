/** Draws one parameter over time; several charts on a page share pointer and zoom. The library is loaded with the first one. */
import type { Signal } from '@preact/signals';
import uPlot from 'uplot';
import { serverNowMs } from '../state/clock.js';
import { formatClock, formatDay, formatMoment, formatNumber } from '../text/language.js';
import { formOnAxis } from '../text/numbers.js';
import { type ChartData, findSingle } from './chart-data.js';

export interface PlotOptions {
  readonly label: string;
  readonly unit: string;
  readonly data: ChartData;
  /** Receives the time and the value at the pointer, as text; empty without a pointer. The heading of the chart shows it. */
  readonly readout: Signal<string>;
  readonly heightPx?: number;
  /** Called with the interval in ms that the user chose by dragging. */
  readonly onZoom?: (fromMs: number, toMs: number) => void;
}

const SYNC = 'vigil';
/** Before and after a single point. */
const AROUND_S = 60;

function optionsOf(
  { label, unit, data, readout, heightPx = 170, onZoom }: PlotOptions,
  widthPx: number,
): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string): string => style.getPropertyValue(name).trim();
  const axis = {
    stroke: color('--quiet'),
    font: `11px ${color('--font')}`,
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
  };
  return {
    width: widthPx,
    height: heightPx,
    legend: { show: false },
    cursor: { sync: { key: SYNC }, drag: { x: onZoom !== undefined, y: false, setScale: false }, points: { size: 7 } },
    scales: {
      x: { range: (plot, from, to) => (plot.data[0].length === 1 ? [from - AROUND_S, from + AROUND_S] : [from, to]) },
    },
    axes: [
      { ...axis, size: 30, space: 80, values: (_plot, times, _axis, _space, step) => toTimes(times, step) },
      { ...axis, size: (_plot, texts) => toWidthPx(texts), values: (_plot, values) => toNumbers(values) },
    ],
    ...seriesOf(`${label} ${unit}`, color('--accent'), data.range !== undefined),
    hooks: {
      setCursor: [
        (plot) => {
          readout.value = readAt(plot, unit);
        },
      ],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < 4) return;
          const from = plot.posToVal(left, 'x');
          const to = plot.posToVal(left + width, 'x');
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          onZoom?.(from * 1_000, to * 1_000);
        },
      ],
    },
  };
}

/** The time and the value at the pointer; the least and the greatest one, too, where one point stands for several values. */
function readAt({ data, cursor: { idx } }: uPlot, unit: string): string {
  const [timeS, value, low, high] = data.map((column) => column[idx ?? -1]);
  if (typeof timeS !== 'number' || typeof value !== 'number') return '';
  const isRange = typeof low === 'number' && typeof high === 'number' && low < high;
  const range = isRange ? ` (${formatNumber(low)} – ${formatNumber(high)})` : '';
  return `${formatMoment(timeS * 1_000, serverNowMs())} · ${formatNumber(value)}${range} ${unit}`;
}

function seriesOf(label: string, stroke: string, hasRange: boolean): Pick<uPlot.Options, 'series' | 'bands'> {
  const line = {
    label,
    stroke,
    width: 1.6,
    points: { show: false, filter: ({ data }: uPlot, at: number) => findSingle(data[at] ?? []) },
  };
  // As strong as the line: the last value of a point is at some of its peaks, and beside others that are as high.
  const edge = { stroke, width: line.width, points: { show: false } };
  if (!hasRange) return { series: [{}, { ...line, fill: `${stroke}14` }] };
  return {
    series: [{}, line, edge, edge],
    bands: [{ series: [3, 2], fill: `${stroke}40` }],
  };
}

const toColumns = ({ times, values, range }: ChartData): uPlot.AlignedData =>
  [times, values, ...(range ? [range.low, range.high] : [])] as unknown as uPlot.AlignedData;

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

export interface Plot {
  setData(data: ChartData): void;
  destroy(): void;
}

/** Draws it in an element, as wide as that is. */
export function createPlot(place: HTMLElement, options: PlotOptions): Plot {
  const plot = new uPlot(optionsOf(options, place.clientWidth), toColumns(options.data), place);
  const observer = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: plot.height }));
  observer.observe(place);
  return {
    setData: (data) => plot.setData(toColumns(data)),
    destroy() {
      observer.disconnect();
      options.readout.value = '';
      plot.destroy();
    },
  };
}
