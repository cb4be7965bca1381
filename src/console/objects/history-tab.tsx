/** What an object said in an interval: charts, the way it took, replay, and the data to take along. */
import { signal, useSignal } from '@preact/signals';
import type { ComponentProps } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import { argumentOf, modelOf, type Shown, toShown } from '../home/values.js';
import { Problem } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { Empty, Skeleton } from '../parts/notices.js';
import { Section } from '../parts/tabs.js';
import { useFetched } from '../state/fetched.js';
import { type FleetObject, type Packet, parametersOf } from '../state/fleet.js';
import { toAddress, useLocation } from '../state/location.js';
import { loadPart, usePart, withTextsOf } from '../state/parts.js';
import { positionOf } from '../state/places.js';
import { may } from '../state/session.js';
import { write } from '../state/write.js';
import { formatNumber, t } from '../text/language.js';
import { Chart } from './chart.js';
import type { ChartData } from './chart-data.js';
import type { IntervalMs } from './days.js';
import { fetchNewestPackets } from './history-packets.js';
import { Interval, intervalOf, widen, withInterval } from './interval.js';
import { namesIn, textOfNames } from './names.js';
import type { Notes as NotesOfInterval } from './notes.js';
import { isWorthChart, numberPathsOf } from './numbers.js';
import { ParameterChips } from './parameter-chips.js';
import type { PlotGhost } from './plot.js';
import type { RouteReplay } from './route-replay.js';
import { fetchSeries } from './series.js';
import type { StateTimeline } from './state-timeline.js';
import { namesWithStates, statePathsOf } from './states.js';

const MAX_CHARTS = 4;

export function HistoryTab({ object }: { object: FleetObject }) {
  const { query, path, route } = useLocation();
  const interval = intervalOf(query, object.state?.time);
  const { data, error } = useFetched(
    () => fetchNewestPackets(object._id, interval),
    [object._id, interval.fromMs, interval.toMs],
  );
  // In the address, so that the interval can be sent to somebody, and the back button undoes a zoom.
  const zoom = (chosen: IntervalMs): void => route(`${path}?${withInterval(query, chosen)}`);
  const packets = data.value?.packets ?? null;
  // The charts of an interval without packets are those of the one before.
  const lastNamed = useRef<readonly Packet[]>([]);
  if (packets !== null && packets.length > 0) lastNamed.current = packets;
  const known = object.state ? [object.state] : [];
  const named = lastNamed.current.length > 0 ? lastNamed.current : known;
  const isCut = data.value?.isCut === true;
  const hasPlaces = useMemo(() => packets?.some((packet) => positionOf(packet) !== null) === true, [packets]);
  const model = modelOf(object._id, object.model);
  const states = useMemo(
    () => statePathsOf((packets ?? []).map(parametersOf), namesWithStates(model?._arguments)),
    [packets, model],
  );
  return (
    <>
      <Interval interval={interval} lastMs={object.state?.time} onChange={zoom} />
      <Problem error={error.value} />
      {packets === null && !error.value && <Skeleton rows={5} />}
      {packets?.length === 0 && (
        <Empty icon="clock" title={t('history.empty')}>
          <div class="buttons">
            <button type="button" class="button primary" onClick={() => zoom(widen(interval))}>
              {t('history.zoomOut')}
            </button>
            {object.state && (
              <button type="button" class="button" onClick={() => route(path)}>
                {t('history.toLast')}
              </button>
            )}
          </div>
        </Empty>
      )}
      {packets?.length === 0 && (
        <Charts object={object} packets={named} interval={interval} hasPlaces={hasPlaces} onZoom={zoom} />
      )}
      {packets !== null && packets.length > 0 && (
        <>
          {isCut && <p class="hint">{t('history.cut', { count: formatNumber(packets.length) })}</p>}
          <Charts object={object} packets={packets} interval={interval} hasPlaces={hasPlaces} onZoom={zoom} />
          {states.length > 0 && <StatesSection object={object} packets={packets} paths={states} isCut={isCut} />}
          {/* Older packets may have places, too. */}
          {(hasPlaces || isCut) && <RouteSection object={object} packets={packets} interval={interval} isCut={isCut} />}
        </>
      )}
    </>
  );
}

/** The address of the page where these are compared with others. */
const comparisonOf = (id: string, names: readonly string[], interval: IntervalMs): string =>
  `/compare?${withInterval({ series: names.map((name) => `${id}:${encodeURIComponent(name)}`).join() }, interval)}`;

/** A chart without a value, over which one can drag, too. */
const toEmptyChart = ({ fromMs, toMs }: IntervalMs): ChartData => ({
  times: [fromMs / 1_000, toMs / 1_000],
  values: [null, null],
  range: { low: [null, null], high: [null, null] },
});

/** The chosen parameters of an interval; the first two if nobody chose, or if none of them occurs in it. */
function shownOf(names: readonly string[], chosen: readonly string[] | null): readonly string[] {
  const present = chosen?.filter((name) => names.includes(name)) ?? [];
  const isChosen = present.length > 0 || chosen?.length === 0;
  return isChosen ? present : names.filter(isWorthChart).slice(0, 2);
}

/** The parameters that are shown. In the address, too, so that it can be sent to somebody. */
function useShown(names: readonly string[]) {
  const { query, path, route } = useLocation();
  const shown = shownOf(names, namesIn(query.charts));
  const toggle = (name: string): void => {
    const others = shown.filter((one) => one !== name);
    const next = others.length < shown.length ? others : [...others, name].slice(-MAX_CHARTS);
    route(`${path}?${new URLSearchParams({ ...query, charts: textOfNames(next) })}`, true);
  };
  return { shown, toggle };
}

interface ChartsProps {
  readonly object: FleetObject;
  readonly packets: readonly Packet[];
  readonly interval: IntervalMs;
  readonly hasPlaces: boolean;
  readonly onZoom: (interval: IntervalMs) => void;
}

function Charts({ object, packets, interval, hasPlaces, onZoom }: ChartsProps) {
  const model = modelOf(object._id, object.model);
  const names = useMemo(() => numberPathsOf(packets.flatMap(parametersOf)), [packets]);
  const parameters = useMemo(
    () => names.map((name) => ({ name, label: toShown(name, 0, model).label })),
    [names, model],
  );
  const { shown, toggle } = useShown(names);
  const { chartOf, error } = useCharts(object, shown, interval);
  const { data: marked, reload } = useMarks(object, interval);
  const ghosts = useGhosts(object, shown, interval);
  const marks = marked.value;
  const isWriting = useSignal(false);
  return (
    <Section
      title={t('history.charts')}
      about={names.length === 0 ? t('history.noNumbers') : <span class="drag-hint">{t('history.zoomHint')}</span>}
      action={
        <div class="buttons">
          <a class="button small" href={toAddress(comparisonOf(object._id, shown, interval))}>
            {t('history.compare')}
          </a>
          <WeekBefore />
          <NoteButton objectId={object._id} onClick={() => write(isWriting)(true)} />
          <Exports object={object} interval={interval} hasPlaces={hasPlaces} />
        </div>
      }
    >
      <ParameterChips parameters={parameters} chosen={shown} onToggle={toggle} />
      <Problem error={error.value} />
      {ghosts && <p class="quiet">{t(ghosts.size > 0 ? 'ghost.shown' : 'ghost.none')}</p>}
      {shown.map((name) => (
        <HistoryChart
          key={name}
          path={name}
          about={toShown(name, 0, model)}
          ranges={argumentOf(name, model)?.thresholds}
          data={chartOf(name)}
          marks={marks}
          ghost={ghosts?.get(name)}
          onZoom={onZoom}
        />
      ))}
      <Notes
        objectId={object._id}
        notes={marks?.notes ?? []}
        interval={interval}
        isWriting={isWriting.value}
        onChange={reload}
        onClose={() => write(isWriting)(false)}
      />
      {marks?.words && marks.alarms.length > 0 && (
        <marks.words.AlarmsOfInterval objectId={object._id} alarms={marks.alarms} />
      )}
    </Section>
  );
}

const NoteButton = ({ objectId, onClick }: { objectId: string; onClick: () => void }) =>
  may('POST', `/objects/${objectId}/notes`) ? (
    <button type="button" class="button small" onClick={onClick}>
      {t('history.note')}
    </button>
  ) : null;

/** Shows the same hours a week before, or hides them. In the address, too. */
function WeekBefore() {
  const { query, path, route } = useLocation();
  const isShown = isWeekBefore(query);
  const { before: _before, ...others } = query;
  const next = new URLSearchParams(isShown ? others : { ...others, before: 'week' });
  return (
    <button type="button" class="button small" aria-pressed={isShown} onClick={() => route(`${path}?${next}`, true)}>
      {t('history.weekBefore')}
    </button>
  );
}

const isWeekBefore = ({ before }: Readonly<Record<string, string>>): boolean => before === 'week';

/** Null unless they are shown. */
function useGhosts(object: FleetObject, shown: readonly string[], { fromMs, toMs }: IntervalMs) {
  const isShown = isWeekBefore(useLocation().query);
  const fetchThem = async () =>
    isShown
      ? (await loadPart(() => import('./ghosts.js').then(withTextsOf))).fetchGhosts(object._id, shown, { fromMs, toMs })
      : null;
  return useFetched(fetchThem, [isShown, JSON.stringify(shown), fromMs, toMs]).data.value;
}

/** The chart of each parameter; undefined until it is there. */
function useCharts(object: FleetObject, shown: readonly string[], interval: IntervalMs) {
  const empty = useMemo(() => toEmptyChart(interval), [interval.fromMs, interval.toMs]);
  const { data, error } = useFetched(
    () => fetchSeries(object._id, shown, interval),
    [JSON.stringify(shown), interval.fromMs, interval.toMs],
  );
  const chartOf = (name: string): ChartData | undefined => {
    const found = data.value?.get(name);
    return data.value && (found === undefined || found.times.length === 0) ? empty : found;
  };
  return { chartOf, error };
}

async function fetchMarks(object: FleetObject, interval: IntervalMs) {
  const { fetchMarks: fetchAll, bandsOf } = await loadPart(() => import('./marks.js'));
  const marks = await fetchAll(object, interval);
  const hasAny = marks.alarms.length > 0 || marks.thresholds.size > 0;
  return { ...marks, bandsOf, words: hasAny ? await loadPart(() => import('./chart-marks.js')) : null };
}

type ShownMarks = Awaited<ReturnType<typeof fetchMarks>> | null;

/** The alarms, thresholds and notes of charts. What cannot be read is not shown. */
const useMarks = (object: FleetObject, interval: IntervalMs) =>
  useFetched(() => fetchMarks(object, interval), [object._id, interval.fromMs, interval.toMs]);

const notesPart = signal<typeof import('./notes.js') | null>(null);

/** They are loaded with the first one, or when somebody writes one. */
function Notes(props: ComponentProps<typeof NotesOfInterval>) {
  const isNeeded = props.isWriting || props.notes.length > 0;
  const part = usePart(notesPart, () => import('./notes.js').then(withTextsOf), isNeeded);
  return isNeeded && part ? <part.Notes {...props} /> : null;
}

interface HistoryChartProps {
  readonly path: string;
  readonly marks: ShownMarks;
  readonly about: Shown;
  readonly ranges: unknown;
  readonly data: ChartData | undefined;
  readonly ghost: PlotGhost | undefined;
  readonly onZoom: (interval: IntervalMs) => void;
}

function HistoryChart({ path, about: { label, unit }, ranges, data, marks, ghost, onZoom }: HistoryChartProps) {
  const readout = useSignal('');
  const thresholds = marks?.thresholds.get(path) ?? [];
  const plotMarks = useMemo(
    () => (marks || ghost) && { thresholds, bands: marks?.bandsOf(marks, path) ?? [], ghost },
    [marks, path, ghost],
  );
  return (
    <figure class="figure">
      <figcaption>
        <span>
          {label} <small class="quiet">{unit}</small>
        </span>
        <span class="readout">{readout}</span>
      </figcaption>
      {data === undefined ? (
        <div class="chart" />
      ) : (
        <Chart
          label={label}
          unit={unit}
          data={data}
          readout={readout}
          marks={plotMarks ?? undefined}
          ranges={ranges}
          onZoom={(fromMs, toMs) => onZoom({ fromMs, toMs })}
        />
      )}
      {marks?.words && thresholds.length > 0 && <marks.words.Thresholds thresholds={thresholds} unit={unit} />}
    </figure>
  );
}

/** The last two consist of positions alone. */
const FORMATS = [
  ['csv', 'CSV'],
  ['geojson', 'GeoJSON'],
  ['gpx', 'GPX'],
] as const;

/** Spreadsheets expect semicolons where numbers have a decimal comma. */
const csvForm = (): string =>
  formatNumber(0.5).includes(',') ? '&bom=true&separator=semicolon&decimal=comma' : '&bom=true';

const isoOf = (ms: number): string => new Date(ms).toISOString();

/** All packets of the interval, however many. */
function Exports({
  object,
  interval: { fromMs, toMs },
  hasPlaces,
}: Pick<ChartsProps, 'object' | 'interval' | 'hasPlaces'>) {
  return (
    <div class="buttons">
      {FORMATS.slice(0, hasPlaces ? 3 : 1).map(([format, title]) => (
        <a
          key={format}
          class="button small"
          href={toAddress(
            `/api/v1/objects/${object._id}/packets?format=${format}${format === 'csv' ? csvForm() : ''}&from=${isoOf(fromMs)}&to=${isoOf(toMs)}`,
          )}
          download={`${object.id}.${format}`}
        >
          <Icon name="download" size={16} /> {title}
        </a>
      ))}
    </div>
  );
}

const routePart = signal<typeof import('./route-replay.js') | null>(null);

/** The way of the object and its replay, which only objects that have one need. */
function RouteSection(props: ComponentProps<typeof RouteReplay>) {
  const part = usePart(routePart, () => import('./route-replay.js').then(withTextsOf));
  return part && <part.RouteReplay {...props} />;
}

const statesPart = signal<typeof import('./state-timeline.js') | null>(null);

/** What the object was over time, which only objects with booleans or texts need. */
function StatesSection(props: ComponentProps<typeof StateTimeline>) {
  const part = usePart(statesPart, () => import('./state-timeline.js').then(withTextsOf));
  return part && <part.StateTimeline {...props} />;
}
