/** What a rule reads, over the time on which it was tried: with its thresholds, and the alarms that it would have raised. */
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { modelOf, toShown } from '../home/values.js';
import { Chart } from '../objects/chart.js';
import type { ChartData } from '../objects/chart-data.js';
import type { IntervalMs } from '../objects/days.js';
import type { PlotMarks } from '../objects/plot.js';
import { fetchSeries } from '../objects/series.js';
import { type Threshold, thresholdsOf } from '../objects/thresholds.js';
import { type Json, type Routes, request } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import type { FleetObject } from '../state/fleet.js';
import { write } from '../state/write.js';
import { formatNumber, t } from '../text/language.js';
import { comparisonsIn, parametersRead } from './parameters.js';

const HEIGHT_PX = 120;
/** As many as one request for series has. */
const MOST_READ = 20;

interface TrialChartsProps {
  readonly object: FleetObject;
  readonly rule: Json;
  readonly interval: IntervalMs;
  readonly alarms: Routes['POST /api/v1/rules/test']['answer']['alarms'];
}

/** Nothing for a rule that reads no parameter with numbers. At first the chart of the first one is shown. */
export function TrialCharts({ object, rule, interval, alarms }: TrialChartsProps) {
  const { _id, model } = object;
  const chosen = useSignal<readonly string[] | null>(null);
  const names = parametersRead(rule.when).slice(0, MOST_READ);
  const comparisons = comparisonsIn(rule.when);
  const { fromMs, toMs } = interval;
  const inputs = [_id, JSON.stringify([names, comparisons]), fromMs, toMs];
  const fetchAll = async () => ({
    charts: await fetchSeries(_id, names, interval),
    config: JSON.stringify(comparisons).includes('"config"') ? await fetchConfig(_id) : null,
  });
  const { data, error } = useFetched(fetchAll, inputs);
  const drawn = data.value;
  const known = drawn === null ? names.slice(0, 1) : names.filter((name) => drawn.charts.has(name));
  if (error.value !== null || known.length === 0) return null;
  const severity = rule.severity === 'critical' || rule.severity === 'info' ? rule.severity : 'warning';
  const bands = alarms.map(({ raised, cleared }) => ({ fromMs: raised, toMs: cleared, severity }) as const);
  const thresholds = comparisons.flatMap((when) => thresholdsOf({ severity, when }, drawn?.config));
  const shown = known.filter((name, at) => chosen.value?.includes(name) ?? at === 0);
  const toggle = (name: string): void => {
    write(chosen)(shown.includes(name) ? shown.filter((one) => one !== name) : [...shown, name]);
  };
  return (
    <>
      {known.length > 1 && (
        <fieldset class="chips" aria-label={t('rule.param')}>
          {known.map((name) => (
            <button
              key={name}
              type="button"
              class="chip"
              aria-pressed={shown.includes(name)}
              onClick={() => toggle(name)}
            >
              {toShown(name, 0, modelOf(_id, model)).label}
            </button>
          ))}
        </fieldset>
      )}
      {shown.map((name) => (
        <ParameterChart
          key={name}
          object={object}
          param={name}
          data={drawn?.charts.get(name)}
          marks={{ bands, thresholds: thresholds.filter(({ param }) => param === name) }}
        />
      ))}
    </>
  );
}

const fetchConfig = async (id: string): Promise<unknown> =>
  (await request('GET /api/v1/objects/{id}', { path: { id }, query: { only: ['config'] } })).config;

interface ChartProps {
  readonly object: FleetObject;
  readonly param: string;
  /** Undefined until it is known. */
  readonly data: ChartData | undefined;
  readonly marks: PlotMarks;
}

function ParameterChart({ object: { _id, model }, param, data, marks }: ChartProps) {
  const readout = useSignal('');
  const { label, unit } = toShown(param, 0, modelOf(_id, model));
  const shown = useMemo(() => marks, [JSON.stringify(marks)]);
  return (
    <figure class="figure" aria-live="off">
      <figcaption>
        <span>
          {label} <small class="quiet">{[signsOf(marks.thresholds), unit].filter(Boolean).join(' ')}</small>
        </span>
        <span class="readout">{readout}</span>
      </figcaption>
      {data === undefined ? (
        <div class="chart" />
      ) : (
        <Chart label={label} unit={unit} data={data} readout={readout} heightPx={HEIGHT_PX} marks={shown} />
      )}
    </figure>
  );
}

const signsOf = (thresholds: readonly Threshold[]): string =>
  thresholds.map(({ sign, value }) => `${sign} ${formatNumber(value)}`).join(', ');
