/** The trips and stops of an object, by day. */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { Icon } from '../parts/icon.js';
import { toAddress, useLocation } from '../state/location.js';
import { formatWeekday } from '../text/calendar.js';
import { formatClock, formatNumber, t, tn } from '../text/language.js';
import { formatDistance, formatSpeed } from '../text/measures.js';
import { formatSpan } from '../text/spans.js';
import { withInterval } from './interval.js';
import { type Leg, type TrackProperties, toCsv } from './trips.js';

const SHOWN_AT_ONCE = 200;
const HOUR_MS = 3_600_000;

/** The day of a moment where the reader is. */
export const dayOf = (ms: number): string => new Date(ms).toDateString();

interface TripListProps {
  readonly legs: readonly Leg[];
  /** The one that the replay shows. */
  readonly current: Leg | undefined;
  readonly onChoose: (leg: Leg) => void;
}

export function TripList({ legs, current, onChoose }: TripListProps) {
  const most = useSignal(SHOWN_AT_ONCE);
  const shown = legs.slice(0, most.value);
  const days = byDay(shown);
  const rest = legs.length - shown.length;
  if (legs.length === 0) return <p class="quiet">{t('trips.none')}</p>;
  return (
    <section class="trips" aria-label={t('trips.label')}>
      {days.map((ofDay) => (
        <div key={ofDay[0]?.fromMs}>
          <h3>{formatWeekday(ofDay[0]?.fromMs ?? 0)}</h3>
          <ol>
            {ofDay.map((leg) => (
              <LegRow key={leg.fromMs} leg={leg} isCurrent={leg === current} onChoose={onChoose} />
            ))}
          </ol>
        </div>
      ))}
      {rest > 0 && (
        <button
          type="button"
          class="button small"
          onClick={() => {
            most.value += SHOWN_AT_ONCE;
          }}
        >
          {t('trips.more', { count: formatNumber(Math.min(rest, SHOWN_AT_ONCE)) })}
        </button>
      )}
    </section>
  );
}

function byDay(legs: readonly Leg[]): Leg[][] {
  const days: Leg[][] = [];
  let day = '';
  for (const leg of legs) {
    if (dayOf(leg.fromMs) !== day) days.push([]);
    day = dayOf(leg.fromMs);
    days.at(-1)?.push(leg);
  }
  return days;
}

interface LegRowProps {
  readonly leg: Leg;
  readonly isCurrent: boolean;
  readonly onChoose: (leg: Leg) => void;
}

function LegRow({ leg, isCurrent, onChoose }: LegRowProps) {
  const { path, query } = useLocation();
  const row = useRef<HTMLLIElement>(null);
  const { kind, number, fromMs, toMs, distanceM } = leg;
  const isTrip = kind === 'trip';
  const from = formatClock(fromMs, false);
  useEffect(() => {
    const list = row.current?.closest<HTMLElement>('.trips');
    // The page itself does not move: somebody looks at the map.
    if (isCurrent && row.current && list && list.scrollHeight > list.clientHeight)
      list.scrollTop = row.current.offsetTop - list.clientHeight / 2;
  }, [isCurrent]);
  return (
    <li ref={row} class={kind} aria-current={isCurrent ? 'step' : undefined}>
      <button
        type="button"
        class="icon-button"
        aria-label={t(isTrip ? 'trips.replay' : 'trips.show', { number, moment: from })}
        onClick={() => onChoose(leg)}
      >
        <Icon name={isTrip ? 'play' : 'map'} size={16} />
      </button>
      <div>
        <strong>{isTrip ? t('trips.number', { number }) : t('trips.stop')}</strong>{' '}
        <a href={toAddress(`${path}?${withInterval(query, leg)}`)}>
          {from} – {formatClock(toMs, false)}
        </a>
        <p class="quiet">{aboutOf(toMs - fromMs, distanceM, isTrip)}</p>
      </div>
    </li>
  );
}

function aboutOf(lengthMs: number, distanceM: number, isTrip: boolean): string {
  if (!isTrip) return formatSpan(lengthMs);
  const speed = formatSpeed(distanceM / 1_000 / (lengthMs / HOUR_MS));
  return [formatDistance(distanceM), formatSpan(lengthMs), t('trips.average', { speed })].join(' · ');
}

/** `3 trips · 42 km · 1 hr 5 min moving`. */
export function sumOf({ distance, movingTime, maxSpeed, trips = [] }: TrackProperties): string {
  if (trips.length === 0) return '';
  const parts = [
    tn('trips.count', trips.length),
    formatDistance(distance),
    t('trips.moving', { span: formatSpan(movingTime) }),
  ];
  return (maxSpeed === null ? parts : [...parts, t('trips.atMost', { speed: formatSpeed(maxSpeed) })]).join(' · ');
}

export function TripsCsv({ legs, name }: { legs: readonly Leg[]; name: string }) {
  const download = (): void => {
    // For spreadsheets, with the mark of the encoding.
    const url = URL.createObjectURL(new Blob(['\uFEFF', toCsv(legs)], { type: 'text/csv' }));
    const link = document.createElement('a');
    link.href = url;
    link.download = `${name}-trips.csv`;
    link.click();
    URL.revokeObjectURL(url);
  };
  return (
    <button type="button" class="button small" onClick={download}>
      <Icon name="download" size={16} /> {t('trips.csv')}
    </button>
  );
}
