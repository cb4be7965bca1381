/** The objects that are nearest to a place: of an address, or of coordinates. */
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { distanceM } from '../../core/geo.js';
import { GEOCODER_LIMITS } from '../../core/geocoder-limits.js';
import { isPosition, type Position } from '../../core/position-fields.js';
import { Age } from '../parts/age.js';
import { Problem } from '../parts/form.js';
import { Empty, Skeleton } from '../parts/notices.js';
import { requestWithoutLogin } from '../state/api.js';
import { nowMs } from '../state/clock.js';
import { useFetched } from '../state/fetched.js';
import { type FleetObject, loading, objectRevision, objects } from '../state/fleet.js';
import { toAddress, useLocation } from '../state/location.js';
import { placeOf } from '../state/places.js';
import { presenceOf } from '../state/presence.js';
import { useTitle } from '../state/title.js';
import { language, t } from '../text/language.js';
import { formatDistance } from '../text/measures.js';
import { explainFailure } from './address.js';
import { mayFind } from './may-find.js';

const MOST_OBJECTS = 50;
/** Rows that moved each second could not be read. */
const SORTED_MS = 5_000;

interface NamedPlace extends Position {
  readonly address: string;
}

/** `48.26, 11.43`; null for anything else. */
function parsePlace(text: string): NamedPlace | null {
  const [, lat, lon] = /^\s*(-?\d{1,2}(?:\.\d+)?)\s*[,;\s]\s*(-?\d{1,3}(?:\.\d+)?)\s*$/.exec(text) ?? [];
  const place = { lat: Number(lat), lon: Number(lon), address: text.trim() };
  return lat !== undefined && isPosition(place.lat, place.lon) ? place : null;
}

async function findPlaces(text: string): Promise<readonly NamedPlace[]> {
  const own = parsePlace(text);
  if (own !== null || !mayFind('search')) return own === null ? [] : [own];
  const query = { text, lang: language.peek() };
  return (await requestWithoutLogin('GET /api/v1/geocoder/search', { query })).places;
}

export function Nearest() {
  useTitle(t('nearest.title'));
  const { query, route } = useLocation();
  const text = (query.to ?? '').trim();
  /** Asking for the same text once more is asking again. */
  const count = useSignal(0);
  return (
    <div class="page">
      <h1>{t('nearest.title')}</h1>
      <form
        class="nearest-form"
        onSubmit={(event) => {
          event.preventDefault();
          const to = String(new FormData(event.currentTarget).get('to') ?? '').trim();
          if (to === text) count.value++;
          else route(`/nearest?${new URLSearchParams({ to })}`);
        }}
      >
        <div class="field">
          <input
            type="text"
            name="to"
            value={text}
            maxLength={GEOCODER_LIMITS.geocoderTextCharacters}
            aria-label={t('nearest.place')}
            placeholder={t(mayFind('search') ? 'nearest.place' : 'nearest.coordinates')}
          />
        </div>
        <button type="submit" class="button primary">
          {t('nearest.find')}
        </button>
      </form>
      {!mayFind('search') && <p class="quiet">{t('nearest.noGeocoder')}</p>}
      {text !== '' && <Places key={`${count.value} ${text}`} text={text} />}
    </div>
  );
}

/** The places that a text names, of which the user chooses one. */
function Places({ text }: { text: string }) {
  const { data: places, error } = useFetched(() => findPlaces(text));
  const chosen = useSignal(0);
  if (error.value) return <Problem error={new Error(explainFailure(error.value))} />;
  if (places.value === null) return <Skeleton rows={4} />;
  const place = places.value[chosen.value];
  if (place === undefined) return <Empty icon="map" title={t('nearest.nothing')} />;
  return (
    <>
      {places.value.length > 1 && (
        <div class="field">
          <select
            aria-label={t('nearest.which')}
            value={chosen.value}
            onChange={({ currentTarget }) => {
              chosen.value = Number(currentTarget.value);
            }}
          >
            {places.value.map(({ address }, index) => (
              <option key={index} value={index}>
                {address}
              </option>
            ))}
          </select>
        </div>
      )}
      <Objects place={place} />
    </>
  );
}

interface Row {
  readonly object: FleetObject;
  readonly metres: number;
  /** When it was there. */
  readonly timeMs: number;
}

function nearestTo({ lat, lon }: Position): Row[] {
  const from = { latitude: lat, longitude: lon };
  const rows: Row[] = [];
  for (const object of objects.values()) {
    const at = placeOf(object);
    if (at === null || object.state === undefined) continue;
    const metres = distanceM(from, { latitude: at.lat, longitude: at.lon });
    rows.push({ object, metres, timeMs: at.timeMs ?? object.state.time });
  }
  return rows.sort((one, other) => one.metres - other.metres).slice(0, MOST_OBJECTS);
}

function Objects({ place }: { place: NamedPlace }) {
  const when = Math.floor(nowMs.value / SORTED_MS);
  const list = useMemo(() => nearestTo(place), [place, objectRevision.value, when]);
  if (list.length === 0) {
    if (loading.value !== 'complete') return <Skeleton rows={4} />;
    return <Empty icon="map" title={t('nearest.noObjects')} />;
  }
  return (
    <ol class="nearest">
      {list.map(({ object, metres, timeMs }) => (
        <li key={object._id}>
          <a href={toAddress(`/?object=${object._id}`)}>
            <span class={`dot ${presenceOf(object)}`} />
            <b>{object.name}</b>
            <span>{formatDistance(metres)}</span>
            <span class="quiet">
              <Age ms={timeMs} />
            </span>
          </a>
        </li>
      ))}
    </ol>
  );
}
