/** A chart of one parameter over time. What draws it is loaded when the values around it are shown. */
import { signal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { meanings } from '../home/tone.js';
import { loadPart } from '../state/parts.js';
import { isDark } from '../state/theme.js';
import { formatNumber } from '../text/language.js';
import type { Plot, PlotOptions } from './plot.js';

const part = signal<typeof import('./plot.js') | null>(null);

async function load(): Promise<void> {
  part.value ??= await loadPart(() => import('./plot.js'));
}

interface ChartProps extends Omit<PlotOptions, 'ranges'> {
  /** The thresholds of the parameter, as its model declares them. */
  readonly ranges?: unknown;
}

export function Chart(given: ChartProps) {
  const meant = meanings.value;
  const ranges = useMemo(() => (given.ranges ? meant?.toPlotRanges(given.ranges) : undefined), [given.ranges, meant]);
  const props = { ...given, ranges };
  const element = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | null>(null);
  const { data, label, heightPx } = props;
  const onZoom = useRef(props.onZoom);
  onZoom.current = props.onZoom;
  useEffect(() => void load(), []);
  useEffect(() => {
    if (element.current === null || part.value === null) return;
    const zoom = props.onZoom && ((from: number, to: number) => onZoom.current?.(from, to));
    const made = part.value.createPlot(element.current, { ...props, ...(zoom && { onZoom: zoom }) });
    plot.current = made;
    return () => made.destroy();
  }, [label, props.unit, isDark.value, part.value, ranges]);
  useEffect(() => plot.current?.setData(data), [data]);
  useEffect(() => plot.current?.setMarks(props.marks), [props.marks]);
  return (
    <>
      <div ref={element} class="chart" role="img" aria-label={describe(props)} style={{ minHeight: heightPx }} />
      {ranges && meant && <meant.Ranges declared={given.ranges} unit={props.unit} />}
    </>
  );
}

/** What a chart shows, for those who do not see it. */
function describe({ label, unit, data }: PlotOptions): string {
  const values = data.values.filter((value) => value !== null);
  if (values.length === 0) return label;
  return `${label}: ${formatNumber(Math.min(...values))} – ${formatNumber(Math.max(...values))} ${unit}`;
}
