/** The list of objects: search, filter, and a row for each with its most telling value. */

import { signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Problem } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { Skeleton } from '../parts/notices.js';
import { SearchField } from '../parts/search-field.js';
import { VirtualList } from '../parts/virtual-list.js';
import { worstByObject } from '../state/alarms.js';
import { loadError, loadFleet, loading, objects, packetsPerSecond, stateRevision } from '../state/fleet.js';
import { isLost } from '../state/live.js';
import { toAddress } from '../state/location.js';
import { loadPart, usePart } from '../state/parts.js';
import { may } from '../state/session.js';
import { write } from '../state/write.js';
import { formatNumber, loadTexts, t, tn } from '../text/language.js';
import { useShow } from './address.js';
import { ListFilters } from './list-filters.js';
import { mainValueOf } from './main-value.js';
import { Mark } from './mark.js';
import { ORDERS, type Order } from './order.js';
import { counts, FILTERS, type Filter, filter, order, search, selectedId, visible } from './selection.js';
import { alarmText, hasSentence, Sentence } from './sentence.js';
import { ToneMark } from './tone.js';
import type { Shown } from './values.js';
import { ViewSwitch } from './view-switch.js';

const ROW_PX = 60;

export function ObjectList() {
  const rows = visible.value;
  const show = useShow();
  const shown = selectedId.value === null ? -1 : rows.findIndex(({ _id }) => _id === selectedId.value);
  return (
    <section class="side" aria-label={t('list.label')}>
      <ListHead />
      <Attention />
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
      <div class="side-first">
        <Search />
        <ViewSwitch />
      </div>
      <Filters />
      <div class="side-tools">
        <ListFilters />
        <OrderSelect />
        <p class="side-count">
          <span>
            {countText(visible.value.length)}
            {packetsPerSecond.value > 0 && ` · ${tn('list.rate', packetsPerSecond.value)}`}
          </span>
          <Views />
          {may('POST', '/objects') && (
            <a class="link-button" href={toAddress('/welcome')} aria-label={t('list.add')}>
              <Icon name="plus" size={16} /> <span>{t('list.add')}</span>
            </a>
          )}
        </p>
      </div>
    </div>
  );
}

const viewsDialog = signal<typeof import('./views-dialog.js') | null>(null);

/** The menu of saved views. */
function Views() {
  const isOpen = useSignal(false);
  const load = () => loadTexts('views').then(() => import('./views-dialog.js'));
  const part = usePart(viewsDialog, load, isOpen.value);
  if (!may('GET', '/views')) return null;
  return (
    <>
      <button type="button" class="link-button" aria-label={t('views.title')} onClick={() => write(isOpen)(true)}>
        <Icon name="list" size={16} /> <span>{t('views.title')}</span>
      </button>
      {isOpen.value && part && <part.ViewsDialog onClose={() => write(isOpen)(false)} />}
    </>
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

const attention = signal<typeof import('./attention.js') | null>(null);

async function loadAttention(): Promise<void> {
  const load = async () => (await Promise.all([import('./attention.js'), loadTexts('alarms')]))[0];
  attention.value ??= await loadPart(load);
}

/** It is loaded with the first open alarm. */
function Attention() {
  const isNeeded = worstByObject.value.size > 0;
  useEffect(() => {
    if (isNeeded) void loadAttention();
  }, [isNeeded]);
  return isNeeded && attention.value ? <attention.value.Attention /> : null;
}

/** Those that every object may match; the others are there where they can match any. */
const USUAL: readonly Filter[] = ['all', 'offline', 'online'];

function isOffered(one: Filter): boolean {
  if (USUAL.includes(one) || filter.value === one) return true;
  if (one === 'critical' || one === 'warning') return may('GET', '/alarms');
  const { moving, standing, silent } = counts.value;
  return one === 'silent' ? silent > 0 : moving + standing > 0;
}

const isEmpty = (one: Filter): boolean => counts.value[one] === 0 && filter.value !== one;

/** How many objects each shows; while they are loaded, nobody knows. */
function Filters() {
  const show = useShow();
  const isComplete = loading.value === 'complete';
  return (
    <fieldset class="chips" aria-label={t('list.filter')}>
      {FILTERS.filter(isOffered).map((one) => (
        <button
          key={one}
          type="button"
          class={`chip${isComplete && counts.value[one] === 0 ? ' none' : ''}`}
          aria-pressed={filter.value === one}
          // Nobody has to pass with the Tab key what shows nothing. One that has the focus keeps it.
          aria-disabled={isEmpty(one)}
          tabIndex={isEmpty(one) ? -1 : 0}
          onClick={() => isEmpty(one) || show({ show: one })}
        >
          {one !== 'all' && <i class={markOf(one)} />}
          {t(one === 'critical' || one === 'warning' ? `severity.${one}` : `filter.${one}`)}{' '}
          {isComplete && <span>{formatNumber(counts.value[one])}</span>}
        </button>
      ))}
    </fieldset>
  );
}

/** The shape of what a filter shows, as the rows and the map have it. */
const CLASSES: Readonly<Record<Exclude<Filter, 'all'>, string>> = {
  critical: 'worst critical',
  warning: 'worst warning',
  offline: 'dot offline',
  silent: 'dot silent',
  moving: 'dot online moving',
  standing: 'dot online',
  online: 'dot online reporting',
};

/** Green only while it is true: without the server, nobody knows. */
const markOf = (one: Exclude<Filter, 'all'>): string =>
  isLost.value && CLASSES[one].startsWith('dot online') ? 'dot unknown' : CLASSES[one];

function OrderSelect() {
  const show = useShow();
  return (
    <select
      class="side-order"
      aria-label={t('order.label')}
      value={order.value}
      onChange={(event) => show({ sort: event.currentTarget.value as Order })}
    >
      {ORDERS.map((one) => (
        <option key={one} value={one}>
          {t(`order.${one}`)}
        </option>
      ))}
    </select>
  );
}

function Row({ id, onSelect }: { id: string; onSelect: () => void }) {
  stateRevision.value;
  const object = objects.get(id);
  if (object === undefined) return null;
  const { state } = object;
  const worst = worstByObject.value.get(id);
  const value = state && mainValueOf(state, object, hasSentence(object));
  return (
    <li class="row">
      <button type="button" aria-pressed={selectedId.value === id} onClick={onSelect}>
        <Mark object={object} />
        <span class="row-text">
          <span class="row-name">
            {worst && (
              <span class={`worst ${worst.severity}`} role="img" aria-label={t(`severity.${worst.severity}`)} />
            )}
            {object.name}
          </span>
          <span class="row-note">
            {worst && <span class={`row-alarm ${worst.severity}`}>{alarmText(worst)}</span>}
            <Sentence object={object} />
          </span>
        </span>
        {value && (
          <span class="row-value">
            <ToneMark {...value} />
            {value.text} <small>{unitOf(value)}</small>
          </span>
        )}
      </button>
    </li>
  );
}

/** A number without a unit is said by its name; what is on or off says it itself. */
const unitOf = ({ unit, label, value }: Shown): string => (unit === '' && typeof value === 'number' ? label : unit);
