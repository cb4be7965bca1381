/** Draws one parameter over time; several charts on a page share pointer and zoom. The library is loaded with the first one. */
import type { Signal } from '@preact/signals';
import uPlot from 'uplot';
import { serverNowMs } from '../state/clock.js';
import { formatMoment, formatNumber } from '../text/language.js';
import { type ChartData, findSingle } from './chart-data.js';
import { type ColorOf, colorNow, numberAxis, timeAxis } from './plot-axes.js';
import type { Band, Threshold } from './thresholds.js';

/** What the parameter was at another time. */
export interface PlotGhost {
  /** The least and the greatest one; empty without any. */
  readonly values: readonly number[];
  /** In words what it was at a time of the chart; empty if that is unknown. */
  readAt(timeS: number): string;
  draw(plot: uPlot, color: ColorOf): void;
}

export interface PlotMarks {
  readonly bands: readonly Band[];
  readonly thresholds: readonly Threshold[];
  readonly ghost?: PlotGhost | undefined;
}

export interface PlotRanges {
  /** Where they begin and end. */
  readonly values: readonly number[];
  draw(plot: uPlot, color: ColorOf): void;
}

export interface PlotOptions {
  readonly label: string;
  readonly unit: string;
  readonly data: ChartData;
  /** Receives the time and the value at the pointer, as text; empty without a pointer. The heading of the chart shows it. */
  readonly readout: Signal<string>;
  readonly heightPx?: number;
  /** Alarms, and thresholds of rules. */
  readonly marks?: PlotMarks | undefined;
  /** What numbers mean. */
  readonly ranges?: PlotRanges | undefined;
  /** Called with the interval in ms that the user chose by dragging. */
  readonly onZoom?: (fromMs: number, toMs: number) => void;
}

const SYNC = 'vigil';
/** Before and after a single point. */
const AROUND_S = 60;

function optionsOf(
  { label, unit, data, readout, heightPx = 170, ranges, onZoom }: PlotOptions,
  widthPx: number,
  marksNow: () => PlotMarks | undefined,
): uPlot.Options {
  const color = colorNow();
  const edges = ranges?.values.map((value) => ({ value })) ?? [];
  return {
    width: widthPx,
    height: heightPx,
    legend: { show: false },
    cursor: { sync: { key: SYNC }, drag: { x: onZoom !== undefined, y: false, setScale: false }, points: { size: 7 } },
    scales: {
      x: { range: (plot, from, to) => (plot.data[0].length === 1 ? [from - AROUND_S, from + AROUND_S] : [from, to]) },
      y: {
        range: (_plot, least: number | null, most: number | null) => {
          const { ghost, thresholds = [] } = marksNow() ?? {};
          const values = [least, most, ...(ghost?.values ?? [])].filter((value) => value !== null);
          return toRange(values, [...edges, ...thresholds]);
        },
      },
    },
    axes: [timeAxis(color), numberAxis(color)],
    ...seriesOf(`${label} ${unit}`, color('--accent'), data.range !== undefined),
    hooks: {
      // Alarms below the lines of the grid, thresholds above them.
      drawClear: [
        (plot) => drawWithin(plot, () => ranges?.draw(plot, color)),
        (plot) => {
          const { bands = [], ghost } = marksNow() ?? {};
          drawBands(plot, bands, color);
          drawWithin(plot, () => ghost?.draw(plot, color));
        },
      ],
      draw: [(plot) => drawThresholds(plot, marksNow()?.thresholds ?? [], color)],
      setCursor: [
        (plot) => {
          readout.value = readAt(plot, unit, marksNow()?.ghost);
        },
      ],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < 4) return;
          const from = plot.posToVal(left, 'x');
          const to = plot.posToVal(left + width, 'x');
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          // Charts that follow the pointer of another one have no event: one drag is one step back.
          if (plot.cursor.event) onZoom?.(from * 1_000, to * 1_000);
        },
      ],
    },
  };
}

/** The time and the value at the pointer; the least and the greatest one, too, where one point stands for several values. */
function readAt({ data, cursor: { idx } }: uPlot, unit: string, ghost: PlotGhost | undefined): string {
  const [timeS, value, low, high] = data.map((column) => column[idx ?? -1]);
  if (typeof timeS !== 'number' || typeof value !== 'number') return '';
  const isRange = typeof low === 'number' && typeof high === 'number' && low < high;
  const range = isRange ? ` (${formatNumber(low)} – ${formatNumber(high)})` : '';
  return `${formatMoment(timeS * 1_000, serverNowMs())} · ${formatNumber(value)}${range} ${unit} ${ghost?.readAt(timeS) ?? ''}`.trimEnd();
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

const RANGE_PAD = 0.1;

/** With the thresholds, except those so far away that the values would become a flat line. */
function toRange(values: readonly number[], thresholds: readonly { readonly value: number }[]): uPlot.Range.MinMax {
  if (values.length === 0) return [null, null];
  const least = Math.min(...values);
  const most = Math.max(...values);
  const reach = Math.max(most - least, Math.abs(most) / 2);
  const near = thresholds.map(({ value }) => value).filter((value) => value >= least - reach && value <= most + reach);
  return uPlot.rangeNum(Math.min(least, ...near), Math.max(most, ...near), RANGE_PAD, true);
}

/** Dashes differ, too: not everybody sees colors. */
const DASHES = { critical: [8, 4], warning: [5, 5], info: [2, 5] } as const;
const BAND_ALPHA = 0.16;
const EDGE_PX = 3;
const LEAST_BAND_PX = 2;

function drawWithin({ ctx, bbox }: uPlot, draw: () => void): void {
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  draw();
  ctx.restore();
}

const drawBands = (plot: uPlot, bands: readonly Band[], color: ColorOf): void =>
  drawWithin(plot, () => {
    const { ctx, bbox } = plot;
    const ratio = uPlot.pxRatio;
    for (const { fromMs, toMs, severity } of bands) {
      const left = plot.valToPos(fromMs / 1_000, 'x', true);
      const right = toMs === null ? bbox.left + bbox.width : plot.valToPos(toMs / 1_000, 'x', true);
      const width = Math.max(LEAST_BAND_PX * ratio, right - left);
      ctx.fillStyle = color(`--${severity}-mark`);
      ctx.globalAlpha = BAND_ALPHA;
      ctx.fillRect(left, bbox.top, width, bbox.height);
      ctx.globalAlpha = 1;
      ctx.fillRect(left, bbox.top, width, EDGE_PX * ratio);
    }
  });

const drawThresholds = (plot: uPlot, thresholds: readonly Threshold[], color: ColorOf): void =>
  drawWithin(plot, () => {
    const { ctx, bbox } = plot;
    const ratio = uPlot.pxRatio;
    for (const { value, severity } of thresholds) {
      const top = plot.valToPos(value, 'y', true);
      ctx.strokeStyle = color(`--${severity}-mark`);
      ctx.lineWidth = 1.5 * ratio;
      ctx.setLineDash(DASHES[severity].map((length) => length * ratio));
      ctx.beginPath();
      ctx.moveTo(bbox.left, top);
      ctx.lineTo(bbox.left + bbox.width, top);
      ctx.stroke();
    }
  });

export interface Plot {
  setData(data: ChartData): void;
  setMarks(marks: PlotMarks | undefined): void;
  destroy(): void;
}

/** Draws it in an element, as wide as that is. */
export function createPlot(place: HTMLElement, options: PlotOptions): Plot {
  let { marks } = options;
  const plot = new uPlot(
    optionsOf(options, place.clientWidth, () => marks),
    toColumns(options.data),
    place,
  );
  const observer = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: plot.height }));
  observer.observe(place);
  return {
    setData: (data) => plot.setData(toColumns(data)),
    setMarks(shown) {
      if (shown === marks) return;
      marks = shown;
      plot.setData(plot.data);
    },
    destroy() {
      observer.disconnect();
      options.readout.value = '';
      plot.destroy();
    },
  };
}
