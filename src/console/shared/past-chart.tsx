/** A chart of a shared parameter over the last 24 hours, which goes on. */
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { argumentOf, type Model, toShown } from '../home/values.js';
import { Chart } from '../objects/chart.js';
import { type ChartData, type Columns, toCharts } from '../objects/chart-data.js';
import { isWorthChart, numberAt, numberPathsOf } from '../objects/numbers.js';
import { ParameterChips } from '../objects/parameter-chips.js';
import { Problem } from '../parts/form.js';
import { Section } from '../parts/tabs.js';
import { useFetched } from '../state/fetched.js';
import { write } from '../state/write.js';
import { t } from '../text/language.js';
import { useSince } from './since.js';
import { connections, readPast, type SharedView } from './view.js';

const POINTS = 600;
const DAY_MS = 86_400_000;
const GAP_MS = 15 * 60_000;

export function PastChart({ shown, model }: { shown: SharedView; model: Model }) {
  const { values } = shown;
  const numbers = numberPathsOf([...values].map(([name, { value }]) => [name, value] as const)).filter(isWorthChart);
  const chosen = useSignal('');
  const name = numbers.includes(chosen.value) ? chosen.value : numbers[0];
  if (name === undefined) return null;
  const parameters = numbers.map((path) => toShown(path, 0, model));
  return (
    <Section
      title={t('shared.past')}
      action={<ParameterChips parameters={parameters} chosen={[name]} onToggle={write(chosen)} />}
    >
      <PastOf
        key={name}
        {...toShown(name, 0, model)}
        ranges={argumentOf(name, model)?.thresholds}
        now={lastOf(values, name)}
      />
    </Section>
  );
}

interface Point {
  readonly timeMs: number;
  readonly value: number;
}

interface PastOfProps {
  readonly name: string;
  readonly label: string;
  readonly unit: string;
  readonly ranges: unknown;
  readonly now: Point | null;
}

function PastOf({ name, label, unit, ranges, now }: PastOfProps) {
  const readout = useSignal('');
  const { points, fetches } = useSince(now, name);
  const { data, error } = useFetched(async () => {
    const series = await readPast([name], POINTS);
    const columns = series[name] as Columns | null | undefined;
    return columns ? toCharts(series.time, new Map([[name, columns]]), DAY_MS / POINTS) : null;
  }, [name, fetches, connections.value]);
  const past = data.value?.get(name) ?? null;
  const all = useMemo(() => (past === null ? null : extend(past, points)), [past, points]);
  return (
    <>
      <p class="readout">{readout}</p>
      <Problem error={error.value} />
      {all !== null && <Chart label={label} unit={unit} data={all} readout={readout} heightPx={220} ranges={ranges} />}
    </>
  );
}

function lastOf(values: SharedView['values'], path: string): Point | null {
  const [name = ''] = path.split('.');
  const last = values.get(path) ?? values.get(name);
  if (last === undefined) return null;
  const value = typeof last.value === 'number' ? last.value : numberAt({ [name]: last.value }, path);
  return value === null ? null : { value, timeMs: last.timeMs };
}

function extend({ times, values, range }: ChartData, points: readonly Point[]): ChartData {
  const lastMs = (times.at(-1) ?? 0) * 1_000;
  const more: { timeMs: number; value: number | null }[] = points.filter(({ timeMs }) => timeMs > lastMs);
  const [first] = more;
  // A line over a long silence would say what nobody knows.
  if (first !== undefined && lastMs > 0 && first.timeMs - lastMs > GAP_MS)
    more.unshift({ timeMs: lastMs + 1, value: null });
  const numbers = more.map(({ value }) => value);
  return {
    times: [...times, ...more.map(({ timeMs }) => timeMs / 1_000)],
    values: [...values, ...numbers],
    ...(range && { range: { low: [...range.low, ...numbers], high: [...range.high, ...numbers] } }),
  };
}
