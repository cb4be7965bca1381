/** What values mean: the mark of a tone, and the ranges of charts. */
import type uPlot from 'uplot';
import { type Meaning, type Tone, thresholdsIn, type ValueThreshold } from '../../core/tones.js';
import type { PlotRanges } from '../objects/plot.js';
import { formatNumber, t } from '../text/language.js';

export { meaningOf } from '../../core/tones.js';

/** A shape with its own color, named for those who see neither. */
export function Mark({ tone, note = tone && t(`tone.${tone}`) }: Meaning) {
  return tone ? <i class="tone" data-tone={tone} role="img" aria-label={note} title={note} /> : null;
}

/** In words what the ranges of a chart mean. */
export function Ranges({ declared, unit }: { declared: unknown; unit: string }) {
  return (
    <ul class="chart-marks" aria-label={t('tone.ranges')}>
      {thresholdsIn(declared).map((range, index) => (
        <li key={index}>
          <Mark tone={range.tone} />
          {range.label && <span>{range.label}</span>}
          <span class="quiet">
            {wordsOf(range)} {unit}
          </span>
        </li>
      ))}
    </ul>
  );
}

function wordsOf({ from, to }: ValueThreshold): string {
  if (from == null) return to == null ? '' : `< ${formatNumber(to)}`;
  return to == null ? `≥ ${formatNumber(from)}` : `${formatNumber(from)} – ${formatNumber(to)}`;
}

const ALPHA = 0.1;
const LABEL_PX = 11;
/** Dashes differ, too: not everybody sees colors. Those of severities are as for thresholds of rules. */
const DASHES: Readonly<Record<Tone, readonly number[]>> = {
  critical: [8, 4],
  warning: [5, 5],
  info: [2, 5],
  ok: [],
  unknown: [1, 4],
  stale: [1, 8],
};

const edgesOf = ({ from, to }: ValueThreshold): number[] => [from, to].filter((value) => typeof value === 'number');

/** Tinted, with a line at each end, and its label. */
export function toPlotRanges(declared: unknown): PlotRanges {
  const ranges = thresholdsIn(declared);
  // The first one that contains a number counts: it is drawn above the others.
  const drawn = [...ranges].reverse();
  return {
    values: ranges.flatMap(edgesOf),
    draw: (plot, color) => {
      for (const range of drawn) drawRange(plot, range, color);
    },
  };
}

function drawRange(plot: uPlot, { from, to, tone, label }: ValueThreshold, color: (name: string) => string): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  const toPx = (value: number): number => plot.valToPos(value, 'y', true);
  const top = to == null ? bbox.top : Math.max(bbox.top, toPx(to));
  const lowest = bbox.top + bbox.height;
  const height = (from == null ? lowest : Math.min(lowest, toPx(from))) - top;
  if (height <= 0) return;
  ctx.fillStyle = color('--surface');
  ctx.fillRect(bbox.left, top, bbox.width, height);
  ctx.fillStyle = color(`--${tone}-mark`);
  ctx.strokeStyle = ctx.fillStyle;
  ctx.globalAlpha = ALPHA;
  ctx.fillRect(bbox.left, top, bbox.width, height);
  ctx.globalAlpha = 1;
  ctx.lineWidth = ratio;
  ctx.setLineDash(DASHES[tone].map((length) => length * ratio));
  for (const value of edgesOf({ from, to, tone } as ValueThreshold)) {
    ctx.beginPath();
    ctx.moveTo(bbox.left, toPx(value));
    ctx.lineTo(bbox.left + bbox.width, toPx(value));
    ctx.stroke();
  }
  if (!label || height < 1.5 * LABEL_PX * ratio) return;
  ctx.font = `${LABEL_PX * ratio}px ${color('--font')}`;
  ctx.textBaseline = 'top';
  ctx.textAlign = 'left';
  ctx.fillText(label, bbox.left + 6 * ratio, top + 3 * ratio);
}
