/** A chart of several series. */
import { useEffect, useRef } from 'preact/hooks';
import type { IntervalMs } from '../objects/days.js';
import { isDark } from '../state/theme.js';
import { createLinesPlot, type Drawn, type LinesPlot, shapeOf } from './lines-plot.js';

interface LinesChartProps {
  readonly label: string;
  readonly drawn: Drawn;
  readonly heightPx: number;
  readonly at: number | null;
  /** The number of the series that somebody looks at. */
  readonly focus: number | null;
  readonly onCursor: (at: number | null) => void;
  readonly onInterval: (interval: IntervalMs) => void;
}

export function LinesChart(props: LinesChartProps) {
  const { label, drawn, heightPx, at, focus } = props;
  const element = useRef<HTMLDivElement>(null);
  const plot = useRef<LinesPlot | null>(null);
  const now = useRef(props);
  now.current = props;
  useEffect(() => {
    if (element.current === null) return undefined;
    const made = createLinesPlot(element.current, {
      drawn: now.current.drawn,
      heightPx,
      onCursor: (point) => now.current.onCursor(point),
      onInterval: (interval) => now.current.onInterval(interval),
    });
    plot.current = made;
    if (now.current.focus !== null) made.setFocus(now.current.focus);
    return () => made.destroy();
  }, [shapeOf(drawn), heightPx, isDark.value]);
  useEffect(() => plot.current?.setDrawn(drawn), [drawn]);
  useEffect(() => plot.current?.setCursor(at), [at]);
  useEffect(() => plot.current?.setFocus(focus), [focus]);
  return <div ref={element} class="chart" role="img" aria-label={label} style={{ minHeight: heightPx }} />;
}
