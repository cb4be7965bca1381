/** The same hours a week before, behind the charts of an interval. */
import uPlot from 'uplot';
import { formatNumber, t } from '../text/language.js';
import type { ChartData } from './chart-data.js';
import { type IntervalMs, weekBefore } from './days.js';
import type { PlotGhost } from './plot.js';
import { fetchSeries } from './series.js';

export { loadOwnTexts } from './history-texts.js';

const DASH_PX = [2, 4];
const WIDTH_PX = 1.4;

/** Of each parameter that had values then. */
export async function fetchGhosts(
  objectId: string,
  names: readonly string[],
  { fromMs, toMs }: IntervalMs,
): Promise<ReadonlyMap<string, PlotGhost>> {
  const byMs = fromMs - weekBefore(fromMs);
  const charts = await fetchSeries(objectId, names, { fromMs: fromMs - byMs, toMs: toMs - byMs }, true);
  const withValues = [...charts].filter(([, { times }]) => times.length > 0);
  return new Map(withValues.map(([name, chart]) => [name, toGhost(chart, byMs / 1_000)]));
}

function toGhost({ times, values }: Pick<ChartData, 'times' | 'values'>, byS: number): PlotGhost {
  const shifted = times.map((timeS) => timeS + byS);
  const present = values.filter((value) => value !== null);
  return {
    values: present.length === 0 ? [] : [Math.min(...present), Math.max(...present)],
    readAt(timeS) {
      const isAfter = timeS > (shifted.at(-1) ?? 0);
      const value = (isAfter ? null : values[shifted.findLastIndex((one) => one <= timeS)]) ?? null;
      return value === null ? '' : `· ${t('ghost.value', { value: formatNumber(value) })}`;
    },
    draw: (plot, color) => drawLine(plot, color('--quiet'), { times: shifted, values }),
  };
}

function drawLine(plot: uPlot, stroke: string, { times, values }: Pick<ChartData, 'times' | 'values'>): void {
  const { ctx } = plot;
  ctx.strokeStyle = stroke;
  ctx.lineWidth = WIDTH_PX * uPlot.pxRatio;
  ctx.setLineDash(DASH_PX.map((length) => length * uPlot.pxRatio));
  ctx.beginPath();
  let isBroken = true;
  for (const [index, timeS] of times.entries()) {
    const value = values[index] ?? null;
    if (value !== null) {
      const place = [plot.valToPos(timeS, 'x', true), plot.valToPos(value, 'y', true)] as const;
      if (isBroken) ctx.moveTo(...place);
      else ctx.lineTo(...place);
    }
    isBroken = value === null;
  }
  ctx.stroke();
}
