/** Draws several series on one time axis, with a scale for each of at most two units. */
import uPlot from 'uplot';
import type { IntervalMs } from '../objects/days.js';
import { type ColorOf, colorNow, numberAxis, timeAxis } from '../objects/plot-axes.js';
import type { Line } from './buckets.js';

export interface DrawnLine extends Line {
  readonly label: string;
  /** Which color and which dashes it has. */
  readonly number: number;
  /** 0 is on the left, 1 on the right. */
  readonly scale: 0 | 1;
}

export interface Drawn {
  readonly starts: readonly number[];
  readonly lines: readonly DrawnLine[];
  readonly interval: IntervalMs;
}

export interface LinesPlotOptions {
  readonly drawn: Drawn;
  readonly heightPx: number;
  /** The point at the pointer; null without a pointer. */
  readonly onCursor: (at: number | null) => void;
  /** An interval was chosen by dragging over it, or the chart was moved. */
  readonly onInterval: (interval: IntervalMs) => void;
}

export interface LinesPlot {
  setDrawn(drawn: Drawn): void;
  setCursor(at: number | null): void;
  /** Pales all lines but this one. */
  setFocus(number: number | null): void;
  destroy(): void;
}

/** The charts of a page have a pointer in common. */
const SYNC = 'vigil.compare';
const LEAST_DRAG_PX = 4;
const WIDTH_PX = 1.6;
const PALE_ALPHA = 0.15;
/** Not everybody sees colors. */
export const DASHES: readonly (readonly number[])[] = [
  [],
  [7, 4],
  [2, 3],
  [10, 3, 2, 3],
  [4, 4],
  [12, 5],
  [2, 6],
  [7, 3, 2, 3, 2, 3],
];

/** The name of the variable of a color. */
export const colorOf = (number: number): string => `--series-${number}`;

const scaleOf = ({ scale }: DrawnLine): string => `y${scale}`;

/** What needs another plot: all else is data. */
export const shapeOf = ({ lines }: Drawn): string =>
  lines.map(({ label, number, scale, isRange }) => [label, number, scale, isRange].join()).join('\n');

export function createLinesPlot(place: HTMLElement, options: LinesPlotOptions): LinesPlot {
  let { drawn } = options;
  const shown = { fromS: 0, toS: 0 };
  const show = ({ fromMs, toMs }: IntervalMs): void => {
    shown.fromS = fromMs / 1_000;
    shown.toS = toMs / 1_000;
  };
  show(drawn.interval);
  const pan = createPan(
    (interval) => {
      show(interval);
      plot.setScale('x', { min: shown.fromS, max: shown.toS });
    },
    (interval) => options.onInterval(interval),
  );
  const plot = new uPlot(
    optionsOf({ ...options, drawn }, place.clientWidth, { shown, pan, drawnNow: () => drawn }),
    toData(drawn),
    place,
  );
  const observer = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: plot.height }));
  observer.observe(place);
  const tellDrawn = (): void => {
    place.dataset.points = String(drawn.starts.length);
  };
  tellDrawn();
  return {
    setDrawn(next) {
      drawn = next;
      show(next.interval);
      plot.setData(toData(next));
      tellDrawn();
    },
    setCursor(at) {
      if (at === (plot.cursor.idx ?? null)) return;
      const timeS = at === null ? undefined : plot.data[0][at];
      const left = timeS === undefined ? -10 : plot.valToPos(timeS, 'x');
      plot.setCursor({ left, top: left < 0 ? -10 : 0 }, false);
    },
    setFocus(number) {
      const owners = drawn.lines.flatMap((line) => columnsOf(line).map(() => line.number));
      for (const [index, series] of plot.series.slice(1).entries())
        series.alpha = number === null || owners[index] === number ? 1 : PALE_ALPHA;
      plot.redraw(false);
    },
    destroy() {
      observer.disconnect();
      plot.destroy();
    },
  };
}

/** The least and the greatest values only where they differ. */
const columnsOf = ({ values, low, high, isRange }: DrawnLine): readonly Line['values'][] =>
  isRange ? [values, low, high] : [values];

const toData = ({ starts, lines }: Drawn): uPlot.AlignedData =>
  [starts.map((ms) => ms / 1_000), ...lines.flatMap(columnsOf)] as unknown as uPlot.AlignedData;

interface Given {
  readonly shown: { readonly fromS: number; readonly toS: number };
  readonly pan: Pan;
  readonly drawnNow: () => Drawn;
}

function optionsOf(
  { drawn, heightPx, onCursor, onInterval }: LinesPlotOptions,
  widthPx: number,
  { shown, pan, drawnNow }: Given,
): uPlot.Options {
  const color = colorNow();
  const scales = [...new Set(drawn.lines.map(scaleOf))];
  const axes = scales.map((scale) => ({
    ...numberAxis(color),
    scale,
    ...(scale === 'y1' && { side: 1 as const, grid: { show: false } }),
  }));
  return {
    width: widthPx,
    height: heightPx,
    legend: { show: false },
    cursor: {
      sync: { key: SYNC },
      drag: { x: true, y: false, setScale: false },
      points: { size: 7 },
      bind: {
        mousedown: (plot, _target, handler) => (event) => (event.shiftKey ? pan.start(plot, event) : handler(event)),
      },
    },
    scales: {
      x: { range: () => [shown.fromS, shown.toS] },
      ...Object.fromEntries(scales.map((scale) => [scale, { range: rangeOf }])),
    },
    axes: [timeAxis(color), ...axes],
    series: [
      {},
      ...drawn.lines.flatMap((line, index) => seriesOf(line, color, () => drawnNow().lines[index]?.singles ?? [])),
    ],
    bands: bandsOf(drawn.lines, color),
    hooks: {
      setCursor: [({ cursor: { idx } }) => onCursor(idx ?? null)],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < LEAST_DRAG_PX) return;
          const msAt = (px: number): number => Math.round(plot.posToVal(px, 'x') * 1_000);
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          // Charts that follow the pointer of another one have no event: one drag is one step back.
          if (plot.cursor.event) onInterval({ fromMs: msAt(left), toMs: msAt(left + width) });
        },
      ],
    },
  };
}

/** The last value of each point, and the least and the greatest as strong, so that equal peaks look equal. */
function seriesOf(line: DrawnLine, color: ColorOf, singlesNow: () => readonly number[]): uPlot.Series[] {
  const stroke = color(colorOf(line.number));
  const scale = scaleOf(line);
  const edge = { scale, stroke, width: 1, points: { show: false } };
  const main = {
    label: line.label,
    scale,
    stroke,
    width: WIDTH_PX,
    dash: [...(DASHES[line.number] ?? [])],
    points: { show: false, filter: () => [...singlesNow()] },
  };
  return line.isRange ? [main, edge, edge] : [main];
}

function bandsOf(lines: readonly DrawnLine[], color: ColorOf): uPlot.Band[] {
  let next = 1;
  return lines.flatMap((line) => {
    const first = next;
    next += columnsOf(line).length;
    return line.isRange ? [{ series: [first + 2, first + 1], fill: `${color(colorOf(line.number))}30` }] : [];
  });
}

const RANGE_PAD = 0.1;

const rangeOf = (_plot: uPlot, least: number | null, most: number | null): uPlot.Range.MinMax =>
  least === null || most === null ? [null, null] : uPlot.rangeNum(least, most, RANGE_PAD, true);

interface Pan {
  start(plot: uPlot, event: MouseEvent): null;
}

/** Moves the chart with the pointer, and says where it is when the button is let go. */
function createPan(onMove: (interval: IntervalMs) => void, onEnd: (interval: IntervalMs) => void): Pan {
  return {
    start(plot, { clientX: startX, button }) {
      const { min = 0, max = 0 } = plot.scales.x ?? {};
      const perPx = ((max as number) - (min as number)) / plot.over.clientWidth;
      if (button !== 0) return null;
      const intervalAt = ({ clientX }: MouseEvent): IntervalMs => {
        const byS = (startX - clientX) * perPx;
        return {
          fromMs: Math.round(((min as number) + byS) * 1_000),
          toMs: Math.round(((max as number) + byS) * 1_000),
        };
      };
      const move = (event: MouseEvent): void => onMove(intervalAt(event));
      const end = (event: MouseEvent): void => {
        removeEventListener('mousemove', move);
        removeEventListener('mouseup', end);
        if (Math.abs(event.clientX - startX) >= LEAST_DRAG_PX) onEnd(intervalAt(event));
      };
      addEventListener('mousemove', move);
      addEventListener('mouseup', end);
      return null;
    },
  };
}
