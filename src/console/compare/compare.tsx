/** Numbers of several objects on one time axis. What is compared, the interval and the layout stand in the address. */
import { computed, type Signal, useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { toCsv } from '../home/table-csv.js';
import type { IntervalMs } from '../objects/days.js';
import { Interval } from '../objects/interval.js';
import { Icon, type IconName } from '../parts/icon.js';
import { Empty, NotPermitted } from '../parts/notices.js';
import { VigilError } from '../state/api.js';
import { findObject } from '../state/by-name.js';
import { nowMs, serverNowMs } from '../state/clock.js';
import { loading, objectRevision } from '../state/fleet.js';
import { useLocation } from '../state/location.js';
import { pages } from '../state/session.js';
import { useTitle } from '../state/title.js';
import { write } from '../state/write.js';
import { formatMoment, formatNumber, type TextKey, t } from '../text/language.js';
import { AddSeries } from './add-series.js';
import { statisticsOf, valueAt } from './buckets.js';
import {
  type Chart,
  chartsOf,
  isSame,
  rowsOf,
  type SeriesState,
  type ShownSeries,
  startsOf,
  withLine,
} from './charts.js';
import {
  boundsOf,
  type Compared,
  comparedOf,
  nameOfSeries,
  type SeriesKey,
  scaled,
  shifted,
  withLayout,
  withSeries,
  withWhole,
  withZoom,
} from './compared.js';
import { Legend, type LegendRow, Swatch } from './legend.js';
import { LinesChart } from './lines-chart.js';
import type { Drawn } from './lines-plot.js';
import { nameSeries } from './names.js';
import { type Loaded, type ManySeries, useManySeries } from './series.js';

const ONE_HEIGHT_PX = 380;
const EACH_HEIGHT_PX = 190;
const PAN_PART = 1 / 2;
/** What the server would say of an object that was removed, or that the user does not see any more. */
const GONE = new VigilError({ status: 404, message: 'Not Found' });

export function Compare() {
  useTitle(t('compare.title'));
  if (!pages.value.objects) return <NotPermitted request="GET /objects" />;
  return <Comparison />;
}

function Comparison() {
  const { query, path, route } = useLocation();
  // Not once a second, but when the interval moves on.
  const key = JSON.stringify(query);
  const asked = useMemo(() => computed(() => JSON.stringify(comparedOf(query, nowMs.value))), [key]);
  const compared = useMemo(() => JSON.parse(asked.value) as Compared, [asked.value]);
  const { series, shown } = compared;
  const many = useManySeries(series, shown);
  objectRevision.value;
  const states = statesOf(series, shown, many);
  const open = (next: string, replace = false): void => route(next === '' ? path : `${path}?${next}`, replace);
  return (
    <div class="page compare" aria-busy={states.some(({ isLoading, isGone }) => isLoading && !isGone)}>
      <h1>{t('compare.title')}</h1>
      <Interval
        interval={shown}
        lastMs={undefined}
        hasSteps={false}
        onChange={(interval) => open(withWhole(query, interval, serverNowMs()))}
      />
      {series.length === 0 ? (
        <Empty icon="activity" title={t('compare.empty')} />
      ) : (
        <Shown
          states={states}
          compared={compared}
          onLayout={(isBelow) => open(withLayout(query, isBelow), true)}
          onZoom={(interval) => open(withZoom(query, interval))}
          onRemove={(name) => {
            const others = series.filter((one) => nameOfSeries(one) !== name);
            open(withSeries(query, others));
          }}
        />
      )}
      <AddSeries series={series} onChange={(next) => open(withSeries(query, next))} />
    </div>
  );
}

/** Of a series that was read for another interval, that one is shown until this one is there, unless others are. */
function statesOf(series: readonly SeriesKey[], shown: IntervalMs, { loaded }: ManySeries): SeriesState[] {
  const isShown = ({ interval }: Loaded): boolean => isSame(interval, shown);
  const isAnyShown = [...loaded.values()].some(isShown);
  return series.map((key, number) => {
    const found = loaded.get(nameOfSeries(key));
    const isGone = loading.value === 'complete' && findObject(key.object) === undefined;
    const isUsable = found !== undefined && (isShown(found) || !isAnyShown) && !isGone;
    return {
      key: nameOfSeries(key),
      number,
      path: `/objects/${encodeURIComponent(key.object)}/history?${new URLSearchParams({ ...boundsOf(shown), charts: encodeURIComponent(key.path) })}`,
      ...nameSeries(key),
      isGone,
      isLoading: found === undefined || !isShown(found),
      error: found?.error,
      buckets: isUsable ? found.buckets : null,
    };
  });
}

interface ShownProps {
  readonly states: readonly SeriesState[];
  readonly compared: Compared;
  readonly onLayout: (isBelow: boolean) => void;
  /** Null shows the whole interval again. */
  readonly onZoom: (interval: IntervalMs | null) => void;
  readonly onRemove: (key: string) => void;
}

function Shown({ states, compared, onLayout, onZoom, onRemove }: ShownProps) {
  const { shown, isBelow, isZoomed } = compared;
  const at = useSignal<number | null>(null);
  const focus = useSignal<number | null>(null);
  const series = useMemo(() => states.map(withLine), [states]);
  const charts = useMemo(() => chartsOf(series, isBelow), [series, isBelow]);
  const starts = startsOf(series);
  const hasManyUnits = !isBelow && charts.length > 1;
  return (
    <>
      <div class="compare-tools no-print">
        <fieldset class="segments" aria-label={t('compare.layout')}>
          {LAYOUTS.map(([below, text]) => (
            <button key={text} type="button" aria-pressed={isBelow === below} onClick={() => onLayout(below)}>
              {t(text)}
            </button>
          ))}
        </fieldset>
        <div class="buttons">
          <Tool text="compare.left" icon="left" onClick={() => onZoom(shifted(shown, -PAN_PART))} />
          <Tool text="compare.right" icon="right" onClick={() => onZoom(shifted(shown, PAN_PART))} />
          <Tool text="compare.zoomIn" icon="plus" onClick={() => onZoom(scaled(shown, 1 / 2))} />
          <Tool text="compare.zoomOut" icon="minus" onClick={() => onZoom(scaled(shown, 2))} />
          <button type="button" class="button small" disabled={!isZoomed} onClick={() => onZoom(null)}>
            {t('compare.reset')}
          </button>
          <button
            type="button"
            class="button small"
            disabled={starts.length === 0}
            onClick={() => saveCsv(rowsOf(series, t('live.time')))}
          >
            <Icon name="download" size={16} /> CSV
          </button>
        </div>
      </div>
      <p class="quiet drag-hint no-print">{t('compare.hint')}</p>
      {hasManyUnits && <p class="quiet">{t('compare.manyUnits')}</p>}
      {charts.map((chart) => (
        <ChartAt
          key={chart.key}
          chart={chart}
          isLarge={charts.length === 1}
          starts={starts}
          interval={shown}
          at={at}
          focus={focus}
          onZoom={onZoom}
        />
      ))}
      <Moment series={series} at={at} />
      <LegendAt series={series} at={at} focus={focus} onRemove={onRemove} />
    </>
  );
}

const LAYOUTS: readonly (readonly [isBelow: boolean, text: TextKey])[] = [
  [false, 'compare.one'],
  [true, 'compare.below'],
];

interface ToolProps {
  readonly text: TextKey;
  readonly icon: IconName;
  readonly onClick: () => void;
}

const Tool = ({ text, icon, onClick }: ToolProps) => (
  <button type="button" class="icon-button" aria-label={t(text)} title={t(text)} onClick={onClick}>
    <Icon name={icon} />
  </button>
);

function saveCsv(rows: readonly (readonly (string | number | null)[])[]): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([toCsv(rows)], { type: 'text/csv' }));
  link.download = 'compare.csv';
  link.click();
  URL.revokeObjectURL(link.href);
}

interface SharedProps {
  readonly series: readonly ShownSeries[];
  /** The point at the pointer. */
  readonly at: Signal<number | null>;
}

function LegendAt({
  series,
  at,
  focus,
  onRemove,
}: SharedProps & { readonly focus: Signal<number | null>; readonly onRemove: (key: string) => void }) {
  const statistics = useMemo(() => series.map(({ buckets }) => buckets && statisticsOf(buckets)), [series]);
  const point = at.value;
  const rows = series.map((one, index): LegendRow => {
    const { line, error, isGone } = one;
    const value = line === null || point === null ? null : valueAt(line, point);
    return { ...one, problem: isGone ? GONE : error, statistics: statistics[index] ?? null, value };
  });
  const atMs = point === null ? null : (startsOf(series)[point] ?? null);
  return <Legend rows={rows} atMs={atMs} onFocus={write(focus)} onRemove={onRemove} />;
}

interface ChartAtProps {
  readonly chart: Chart;
  readonly isLarge: boolean;
  readonly starts: readonly number[];
  readonly interval: IntervalMs;
  readonly at: Signal<number | null>;
  readonly focus: Signal<number | null>;
  readonly onZoom: (interval: IntervalMs) => void;
}

function ChartAt({ chart, isLarge, starts, interval, at, focus, onZoom }: ChartAtProps) {
  const { series, units } = chart;
  const only = series.length === 1 ? series[0] : undefined;
  const drawn = useMemo(
    (): Drawn => ({
      starts: starts.length > 0 ? starts : [interval.fromMs, interval.toMs],
      interval,
      lines: series.flatMap(({ line, number, name, label, unit }) =>
        line === null ? [] : [{ ...line, number, label: `${name} ${label}`, scale: units.indexOf(unit) === 1 ? 1 : 0 }],
      ),
    }),
    [series, starts, interval],
  );
  return (
    <figure class="figure">
      <figcaption>
        {only === undefined ? (
          <span class="quiet">{units[0]}</span>
        ) : (
          <span>
            <Swatch number={only.number} /> {only.name} · {only.label} <small class="quiet">{only.unit}</small>
          </span>
        )}
        {units.length > 1 && <span class="quiet">{units[1]}</span>}
        {only?.line && at.value !== null && <span class="readout">{textOf(valueAt(only.line, at.value))}</span>}
      </figcaption>
      <LinesChart
        label={series.map(({ name, label, unit }) => `${name} ${label} ${unit}`.trim()).join(', ')}
        drawn={drawn}
        heightPx={isLarge ? ONE_HEIGHT_PX : EACH_HEIGHT_PX}
        at={at.value}
        focus={focus.value}
        onCursor={write(at)}
        onInterval={onZoom}
      />
    </figure>
  );
}

const textOf = (value: number | null): string => (value === null ? '–' : formatNumber(value));

/** The pointer for the keyboard and for fingers. */
function Moment({ series, at }: SharedProps) {
  const starts = startsOf(series);
  if (starts.length === 0) return null;
  const point = at.value ?? starts.length - 1;
  const texts = series.flatMap(({ line, name, label, unit }) => {
    const value = line && valueAt(line, point);
    return value === null ? [] : [`${name} ${label} ${formatNumber(value)} ${unit}`];
  });
  const moment = formatMoment(starts[point] ?? 0, serverNowMs());
  return (
    <label class="compare-moment no-print">
      <span>{t('compare.moment')}</span>
      <input
        type="range"
        min={0}
        max={starts.length - 1}
        value={point}
        aria-valuetext={[moment, ...texts].join(', ')}
        onInput={(event) => {
          at.value = Number(event.currentTarget.value);
        }}
      />
      <output>{moment}</output>
    </label>
  );
}
