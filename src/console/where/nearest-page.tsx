/** The objects that are nearest to a place: of an address, of coordinates, or of a click on the map. */

import { useSignal } from '@preact/signals';
import { distanceM } from '../../core/geo.js';
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
import { mayFindAddresses } from './address.js';

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
  if (own !== null || text === '' || !mayFindAddresses()) return own === null ? [] : [own];
  const query = { text, lang: language.peek() };
  return (await requestWithoutLogin('GET /api/v1/geocoder/search', { query })).places;
}

export function Nearest() {
  useTitle(t('nearest.title'));
  const { query, route } = useLocation();
  const text = query.to ?? '';
  const places = useSignal<readonly NamedPlace[] | null>(null);
  const chosen = useSignal(0);
  const { error } = useFetched(async () => {
    places.value = null;
    chosen.value = 0;
    places.value = await findPlaces(text);
  }, [text]);
  const place = places.value?.[chosen.value];
  return (
    <div class="page">
      <h1>{t('nearest.title')}</h1>
      <form
        class="nearest-form"
        onSubmit={(event) => {
          event.preventDefault();
          const to = String(new FormData(event.currentTarget).get('to') ?? '');
          route(`/nearest?${new URLSearchParams({ to })}`);
        }}
      >
        <input
          type="text"
          name="to"
          key={text}
          defaultValue={text}
          maxLength={256}
          aria-label={t('nearest.place')}
          placeholder={t(mayFindAddresses() ? 'nearest.place' : 'nearest.coordinates')}
        />
        <button type="submit" class="button primary">
          {t('nearest.find')}
        </button>
      </form>
      {!mayFindAddresses() && <p class="quiet">{t('nearest.noGeocoder')}</p>}
      <Problem error={error} />
      {places.value === null && !error.value && <Skeleton rows={4} />}
      {places.value?.length === 0 && text !== '' && <Empty icon="map" title={t('nearest.nothing')} />}
      {(places.value?.length ?? 0) > 1 && (
        <select
          aria-label={t('nearest.which')}
          onChange={({ currentTarget }) => {
            chosen.value = Number(currentTarget.value);
          }}
        >
          {places.value?.map(({ address }, index) => (
            <option key={address} value={index}>
              {address}
            </option>
          ))}
        </select>
      )}
      {place !== undefined && <Objects place={place} />}
    </div>
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
  objectRevision.value;
  const rows = useSignal<{ readonly key: string; readonly list: readonly Row[] } | null>(null);
  const key = `${place.lat} ${place.lon} ${objectRevision.value} ${Math.floor(nowMs.value / SORTED_MS)}`;
  if (rows.peek()?.key !== key) rows.value = { key, list: nearestTo(place) };
  const list = rows.value?.list ?? [];
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
