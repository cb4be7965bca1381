/** What a rule compares, over the time on which it was tried: with its thresholds, and the alarms that it would have raised. */
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { modelOf, toShown } from '../home/values.js';
import { Chart } from '../objects/chart.js';
import type { IntervalMs } from '../objects/days.js';
import type { PlotMarks } from '../objects/plot.js';
import { fetchSeries } from '../objects/series.js';
import { type Threshold, thresholdsOf } from '../objects/thresholds.js';
import type { Json, Routes } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import type { FleetObject } from '../state/fleet.js';
import { formatNumber } from '../text/language.js';
import { isObject } from './draft.js';

const HEIGHT_PX = 120;

interface TrialChartProps {
  readonly object: FleetObject;
  readonly rule: Json;
  readonly interval: IntervalMs;
  readonly alarms: Routes['POST /api/v1/rules/test']['answer']['alarms'];
}

/** Nothing for a rule that compares no parameter. */
export function TrialChart({ object, rule, interval, alarms }: TrialChartProps) {
  const compared = findCompared(rule.when);
  const thresholds = thresholdsOf({ ...rule, when: compared });
  const severity = rule.severity === 'critical' || rule.severity === 'info' ? rule.severity : 'warning';
  const bands = alarms.map(({ raised, cleared }) => ({ fromMs: raised, toMs: cleared, severity }) as const);
  if (compared === null) return null;
  const marks = { bands, thresholds };
  return <ParameterChart object={object} interval={interval} param={String(compared.param)} marks={marks} />;
}

/** The first condition on a parameter. */
function findCompared(condition: unknown): Json | null {
  if (!isObject(condition)) return null;
  if (typeof condition.param === 'string') return condition;
  const { all, any, not } = condition;
  const found = [all, any, not].flat().map(findCompared);
  return found.find((one) => one !== null) ?? null;
}

interface ChartProps {
  readonly object: FleetObject;
  readonly interval: IntervalMs;
  readonly param: string;
  readonly marks: PlotMarks;
}

function ParameterChart({ object, interval, param, marks }: ChartProps) {
  const readout = useSignal('');
  const { _id, model } = object;
  const { data, error } = useFetched(
    () => fetchSeries(_id, [param], interval),
    [_id, param, interval.fromMs, interval.toMs],
  );
  const { label, unit } = toShown(param, 0, modelOf(_id, model));
  const shown = useMemo(() => marks, [JSON.stringify(marks)]);
  const chart = data.value?.get(param);
  // Texts have no chart.
  if (error.value || (data.value !== null && chart === undefined)) return null;
  return (
    <figure class="figure" aria-live="off">
      <figcaption>
        <span>
          {label} <small class="quiet">{[signsOf(marks.thresholds), unit].filter(Boolean).join(' ')}</small>
        </span>
        <span class="readout">{readout}</span>
      </figcaption>
      {chart === undefined ? (
        <div class="chart" />
      ) : (
        <Chart label={label} unit={unit} data={chart} readout={readout} heightPx={HEIGHT_PX} marks={shown} />
      )}
    </figure>
  );
}

const signsOf = (thresholds: readonly Threshold[]): string =>
  thresholds.map(({ sign, value }) => `${sign} ${formatNumber(value)}`).join(', ');
