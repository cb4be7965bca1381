/** The list of objects: search, filter, and a row for each with its most telling value. */

import { Problem } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { Skeleton } from '../parts/notices.js';
import { SearchField } from '../parts/search-field.js';
import { VirtualList } from '../parts/virtual-list.js';
import { worstByObject } from '../state/alarms.js';
import { nowMs } from '../state/clock.js';
import { loadError, loadFleet, loading, objects, packetsPerSecond, stateRevision } from '../state/fleet.js';
import { toAddress } from '../state/location.js';
import { may } from '../state/session.js';
import { formatAge, formatNumber, t, tn } from '../text/language.js';
import { useShow } from './address.js';
import { ListFilters } from './list-filters.js';
import { mainValueOf } from './main-value.js';
import { counts, FILTERS, filter, presenceOf, search, selectedId, visible } from './selection.js';

const ROW_PX = 60;

export function ObjectList() {
  const rows = visible.value;
  const show = useShow();
  const shown = selectedId.value === null ? -1 : rows.findIndex(({ _id }) => _id === selectedId.value);
  return (
    <section class="side" aria-label={t('list.label')}>
      <ListHead />
      {(loading.value === 'idle' || loading.value === 'loading') && rows.length === 0 && <Skeleton rows={9} />}
      {loadError.value && (
        <div class="side-note">
          <Problem error={loadError.value} />
          <button type="button" class="button small" onClick={() => void loadFleet()}>
            {t('action.retry')}
          </button>
        </div>
      )}
      {loading.value === 'complete' && rows.length === 0 && (
        <p class="side-note quiet">
          {search.value ? t('list.nothingFound', { text: search.value }) : t('list.nothing')}
        </p>
      )}
      <VirtualList
        count={rows.length}
        rowPx={ROW_PX}
        label={t('list.label')}
        shown={shown}
        renderRow={(index) => {
          const id = rows[index]?._id ?? '';
          return <Row key={id} id={id} onSelect={() => show({ object: id })} />;
        }}
      />
    </section>
  );
}

function ListHead() {
  return (
    <div class="side-head">
      <Search />
      <Filters />
      <ListFilters />
      <p class="side-count">
        <span>
          {countText(visible.value.length)}
          {packetsPerSecond.value > 0 && ` · ${tn('list.rate', packetsPerSecond.value)}`}
        </span>
        {may('POST', '/objects') && (
          <a class="link-button" href={toAddress('/welcome')}>
            <Icon name="plus" size={16} /> {t('list.add')}
          </a>
        )}
      </p>
    </div>
  );
}

/** While objects are loaded, nobody knows how many there are. */
function countText(count: number): string {
  if (loading.value === 'complete') return tn('list.count', count);
  if (count > 0) return tn('list.soFar', count);
  return loading.value === 'failed' ? '' : t('list.loading');
}

function Search() {
  const show = useShow();
  return <SearchField label={t('list.search')} value={search.value} onInput={(text) => show({ search: text })} />;
}

function Filters() {
  const show = useShow();
  return (
    <fieldset class="chips" aria-label={t('list.filter')}>
      {FILTERS.map((one) => (
        <button
          key={one}
          type="button"
          class="chip"
          aria-pressed={filter.value === one}
          onClick={() => show({ show: one })}
        >
          {t(`filter.${one}`)} {loading.value === 'complete' && <span>{formatNumber(counts.value[one])}</span>}
        </button>
      ))}
    </fieldset>
  );
}

function Row({ id, onSelect }: { id: string; onSelect: () => void }) {
  stateRevision.value;
  const object = objects.get(id);
  if (object === undefined) return null;
  const { state } = object;
  const worst = worstByObject.value.get(id);
  const value = state && mainValueOf(state, object.model);
  return (
    <li class="row">
      <button type="button" aria-pressed={selectedId.value === id} onClick={onSelect}>
        <span class={`dot ${presenceOf(object)}`} />
        <span class="row-text">
          <span class="row-name">
            {worst && <span class={`worst ${worst}`} role="img" aria-label={t(`severity.${worst}`)} />}
            {object.name}
          </span>
          <span class="row-note">
            <span class="visually-hidden">{t(`state.${presenceOf(object)}`)}</span>
            {state ? formatAge(state.time, nowMs.value) : t('state.never')}
          </span>
        </span>
        {value && (
          <span class="row-value">
            {value.text} <small>{value.unit}</small>
          </span>
        )}
      </button>
    </li>
  );
}
