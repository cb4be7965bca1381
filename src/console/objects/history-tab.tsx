/** What an object said in an interval: charts, the way it took, replay, and the data to take along. */
import { useComputed, useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { useLocation } from 'preact-iso/router';
import { modelOf, type Shown, toShown } from '../home/values.js';
import { Problem } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { Empty, Skeleton } from '../parts/notices.js';
import { Section } from '../parts/tabs.js';
import { Values } from '../parts/values.js';
import { call, toQuery } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import { type FleetObject, type Packet, parametersOf } from '../state/fleet.js';
import { write } from '../state/write.js';
import { formatNumber, t } from '../text/language.js';
import { Chart } from './chart.js';
import type { ChartData } from './chart-data.js';
import { Interval, type IntervalMs, intervalOf } from './interval.js';
import { addPacket, type LastValues } from './last-values.js';
import { Replay } from './replay.js';
import { fetchSeries } from './series.js';

const MAX_PACKETS = 10_000;
const MAX_CHARTS = 4;
/** Before a moment of the replay: their values are shown beside it. */
const MOMENT_PACKETS = 100;
const NO_CHART = new Set(['lat', 'lon', 'angle']);

export function HistoryTab({ object }: { object: FleetObject }) {
  const { query, path, route } = useLocation();
  const interval = intervalOf(query, object.state?.time);
  const { data, error } = useFetched(async () => {
    const wanted = { begin: interval.fromMs, end: interval.toMs, sortBy: '-time', limit: MAX_PACKETS };
    return (await call<Packet[]>('GET', `/objects/${object._id}/packets${toQuery(wanted)}`)).reverse();
  }, [object._id, interval.fromMs, interval.toMs]);
  // In the address, so that the interval can be sent to somebody, and the back button undoes a zoom.
  const zoom = ({ fromMs, toMs }: IntervalMs): void =>
    route(`${path}${toQuery({ from: Math.round(fromMs), to: Math.round(toMs) })}`);
  const packets = data.value;
  return (
    <>
      <Interval interval={interval} lastMs={object.state?.time} onChange={zoom} />
      <Problem error={error.value} />
      {packets === null && !error.value && <Skeleton rows={5} />}
      {packets?.length === 0 && <Empty icon="clock" title={t('history.empty')} />}
      {packets !== null && packets.length > 0 && (
        <>
          {packets.length === MAX_PACKETS && (
            <p class="hint">{t('history.cut', { count: formatNumber(MAX_PACKETS) })}</p>
          )}
          <Charts object={object} packets={packets} interval={interval} onZoom={zoom} />
          <Moments object={object} packets={packets} />
        </>
      )}
    </>
  );
}

/** Other names cannot be part of a query. */
const NAMEABLE = /^[\w.!-]+$/;

/** The parameters with numbers, in the order in which they appear. */
function numbersOf(packets: readonly Packet[]): string[] {
  const names = new Set<string>();
  for (const packet of packets)
    for (const [name, value] of parametersOf(packet))
      if (typeof value === 'number' && NAMEABLE.test(name)) names.add(name);
  return [...names];
}

/** The chosen parameters of an interval; the first two if nobody chose, or if none of them occurs in it. */
function shownOf(names: readonly string[], chosen: readonly string[] | null): readonly string[] {
  const present = chosen?.filter((name) => names.includes(name)) ?? [];
  const isChosen = present.length > 0 || chosen?.length === 0;
  return isChosen ? present : names.filter((name) => !NO_CHART.has(name)).slice(0, 2);
}

interface ChartsProps {
  readonly object: FleetObject;
  readonly packets: readonly Packet[];
  readonly interval: IntervalMs;
  readonly onZoom: (interval: IntervalMs) => void;
}

function Charts({ object, packets, interval, onZoom }: ChartsProps) {
  const model = modelOf(object._id, object.model);
  const names = numbersOf(packets);
  const chosen = useSignal<readonly string[] | null>(null);
  const shown = shownOf(names, chosen.value);
  const toggle = (name: string): void => {
    const others = shown.filter((one) => one !== name);
    chosen.value = others.length < shown.length ? others : [...others, name].slice(-MAX_CHARTS);
  };
  const { data, error } = useFetched(
    () => fetchSeries(object._id, shown, interval),
    [shown.join(), interval.fromMs, interval.toMs],
  );
  return (
    <Section
      title={t('history.charts')}
      about={t('history.zoomHint')}
      action={<Exports object={object} interval={interval} />}
    >
      <fieldset class="chips" aria-label={t('live.parameter')}>
        {names.map((name) => (
          <button
            key={name}
            type="button"
            class="chip"
            aria-pressed={shown.includes(name)}
            onClick={() => toggle(name)}
          >
            {toShown(name, 0, model).label}
          </button>
        ))}
      </fieldset>
      <Problem error={error.value} />
      {shown.map((name) => (
        <HistoryChart key={name} about={toShown(name, 0, model)} data={data.value?.get(name)} onZoom={onZoom} />
      ))}
    </Section>
  );
}

interface HistoryChartProps {
  readonly about: Shown;
  readonly data: ChartData | undefined;
  readonly onZoom: (interval: IntervalMs) => void;
}

function HistoryChart({ about: { label, unit }, data, onZoom }: HistoryChartProps) {
  return (
    <figure class="figure">
      <figcaption>
        {label} <small class="quiet">{unit}</small>
      </figcaption>
      {data === undefined ? (
        <div class="chart" />
      ) : (
        <Chart label={label} unit={unit} data={data} onZoom={(fromMs, toMs) => onZoom({ fromMs, toMs })} />
      )}
    </figure>
  );
}

const FORMATS = ['csv', 'geojson', 'gpx'] as const;

/** All packets of the interval, however many. */
function Exports({ object, interval: { fromMs, toMs } }: { object: FleetObject; interval: IntervalMs }) {
  return (
    <div class="buttons">
      {FORMATS.map((format) => (
        <a
          key={format}
          class="button small"
          href={`/api/v1/objects/${object._id}/packets${toQuery({ format, from: fromMs, to: toMs })}`}
          download={`${object.id}.${format}`}
        >
          <Icon name="download" size={16} /> {format.toUpperCase()}
        </a>
      ))}
    </div>
  );
}

/** The replay, and the values at its moment beside it. */
function Moments({ object, packets }: { object: FleetObject; packets: readonly Packet[] }) {
  const momentMs = useSignal<number | null>(null);
  const model = modelOf(object._id, object.model);
  const names = useMemo(() => [...new Set(packets.flatMap(Object.keys))], [packets]);
  const values = useComputed<Shown[]>(() => {
    const ms = momentMs.value;
    const end = ms === null ? packets.length : 1 + packets.findLastIndex(({ time }) => time <= ms);
    const last: LastValues = new Map();
    for (const packet of packets.slice(Math.max(0, end - MOMENT_PACKETS), end)) addPacket(last, packet);
    return names.flatMap((name) => {
      const found = last.get(name);
      return found ? [toShown(name, found.value, model)] : [];
    });
  });
  return (
    <>
      <Replay packets={packets} onMoment={write(momentMs)} />
      {momentMs.value !== null && <Values values={values.value} isLarge />}
    </>
  );
}
