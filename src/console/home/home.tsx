/** The first page: the list of objects, the map, and the selected object. */

import { signal } from '@preact/signals';
import { Empty } from '../parts/notices.js';
import { loading, objectRevision, objects } from '../state/fleet.js';
import { toAddress } from '../state/location.js';
import { usePart, withTextsOf } from '../state/parts.js';
import { may, pages } from '../state/session.js';
import { useTitle } from '../state/title.js';
import { loadTexts, t } from '../text/language.js';
import { useAddress, useShow } from './address.js';
import { onHomeKey } from './keys.js';
import { useLastPositions } from './last-positions.js';
import { MapPanel } from './map-panel.js';
import { ObjectList } from './object-list.js';
import { selectedId } from './selection.js';
import { placing, shownView } from './view.js';

export function Home() {
  useAddress();
  const show = useShow();
  useLastPositions();
  objectRevision.value;
  useTitle(objects.get(selectedId.value ?? '')?.name ?? null);
  if (!pages.value.objects) {
    return <Empty icon="shield" title={t('home.notPermitted')} />;
  }
  if (loading.value === 'complete' && objects.size === 0) return <FirstObject />;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys of what is in it
    <div
      onKeyDown={(event) => onHomeKey(event, show)}
      class={`home as-${shownView.value}${selectedId.value ? ' has-selection' : ''}`}
    >
      <h1 class="visually-hidden">{t('nav.map')}</h1>
      <ObjectList />
      {shownView.value === 'map' && <MapPanel question={<MapQuestion />} />}
      <Others />
      {selectedId.value && <Card id={selectedId.value} />}
    </div>
  );
}

const card = signal<typeof import('./object-card.js') | null>(null);

/** It is loaded when an object is first selected. */
function Card({ id }: { id: string }) {
  const part = usePart(card, () => loadTexts('where').then(() => import('./object-card.js')));
  return part && <part.ObjectCard id={id} />;
}

const tiles = signal<typeof import('./tiles.js') | null>(null);
const table = signal<typeof import('./object-table.js') | null>(null);

/** What is there in place of the map; or below it, of the objects that are not on it. */
function Others() {
  const shown = shownView.value;
  const isStrip = shown === 'map' && placing.value === 'some';
  const tilesPart = usePart(
    tiles,
    withTexts(() => import('./tiles.js')),
    isStrip || shown === 'tiles',
  );
  const tablePart = usePart(
    table,
    withTexts(() => import('./object-table.js').then(withTextsOf)),
    shown === 'table',
  );
  if (shown === 'map') return isStrip && tilesPart ? <tilesPart.Strip /> : null;
  return (
    <div class="stage">
      {shown === 'tiles' ? tilesPart && <tilesPart.Tiles /> : tablePart && <tablePart.ObjectTable />}
    </div>
  );
}

const withTexts =
  <T,>(load: () => Promise<T>) =>
  (): Promise<T> =>
    loadTexts('views').then(load);

const askMap = signal<typeof import('../settings/ask-map.js') | null>(null);

/** It is loaded until an administrator of the installation has answered it. */
function MapQuestion() {
  const isAsked = pages.value.settings && isMapOpen();
  const part = usePart(askMap, () => import('../settings/ask-map.js').then(withTextsOf), isAsked);
  return isAsked && part ? <part.AskMap /> : null;
}

/** Whether nobody has decided which map pages show: the page names none. */
const isMapOpen = (): boolean => document.querySelector<HTMLMetaElement>('meta[name=vigil-map]')?.content === '';

function FirstObject() {
  return (
    <Empty icon="map" title={t('home.empty')}>
      <p>{t('home.emptyAbout')}</p>
      {may('POST', '/objects') ? (
        <a class="button primary" href={toAddress('/welcome')}>
          {t('home.connect')}
        </a>
      ) : (
        <p class="quiet">{t('home.askAdministrator')}</p>
      )}
      <MapQuestion />
    </Empty>
  );
}
