/** Everything about one object, in tabs. */

import { signal } from '@preact/signals';
import { Age } from '../parts/age.js';
import { Problem } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { Labels } from '../parts/labels.js';
import { Empty, NotPermitted, Skeleton } from '../parts/notices.js';
import { Tabs } from '../parts/tabs.js';
import { VigilError } from '../state/api.js';
import { labelsOf } from '../state/by-name.js';
import { useFetched } from '../state/fetched.js';
import { type FleetObject, loadObject, objectRevision, objects, stateRevision } from '../state/fleet.js';
import { toAddress } from '../state/location.js';
import { usePart } from '../state/parts.js';
import { placeOf } from '../state/places.js';
import { presenceOf } from '../state/presence.js';
import { may } from '../state/session.js';
import { loadTexts, t } from '../text/language.js';
import { TAB_PARTS, TABS, type Tab, toTab } from './object-tabs.js';
import { Share } from './share.js';

/** A request without which the tab has nothing to show, if the user's role does not permit it; null otherwise. */
function lackingFor(tab: Tab, id: string): string | null {
  const isReadable = (part: string): boolean => may('GET', `/objects/${id}/${part}`);
  if (tab === 'history' && !isReadable('packets')) return 'GET /objects/*/packets';
  if (tab !== 'commands' || isReadable('commands') || may('POST', `/objects/${id}/commands/any`)) return null;
  return 'GET /objects/*/commands';
}

export function ObjectPage({ id = '', tab = 'live' }: { id?: string; tab?: string }) {
  objectRevision.value;
  const known = objects.get(id) ?? [...objects.values()].find((object) => object.id === id);
  const { error } = useFetched(async () => {
    if (known === undefined) await loadObject(id);
  }, [id]);
  if (known === undefined) {
    if (error.value instanceof VigilError && error.value.status === 404)
      return <Empty icon="box" title={t('object.notFound')} />;
    return <div class="page">{error.value ? <Problem error={error.value} /> : <Skeleton rows={4} />}</div>;
  }
  const shown = toTab(tab);
  const lacking = lackingFor(shown, known._id);
  const Part = TAB_PARTS[shown];
  return (
    <div class="page">
      <Head object={known} />
      <Tabs
        label={known.name}
        path={`/objects/${id}/${shown}`}
        tabs={TABS.filter((one) => lackingFor(one, known._id) === null).map((one) => ({
          path: `/objects/${id}/${one}`,
          text: t(`tab.${one}`),
        }))}
      />
      {lacking === null ? <Part object={known} key={keyOf(known, shown)} /> : <NotPermitted request={lacking} />}
    </div>
  );
}

/** Packets that were removed go from the pages that show packets. */
const keyOf = ({ _id, packetsRemoved }: FleetObject, tab: Tab): string =>
  tab === 'live' || tab === 'history' ? `${_id} ${packetsRemoved}` : _id;

const where = signal<typeof import('../where/where.js') | null>(null);

/** What the object does and where, in words that are loaded when the page is there. */
function Whereabouts({ object }: { object: FleetObject }) {
  const part = usePart(where, () =>
    Promise.all([loadTexts('home'), loadTexts('where')]).then(() => import('../where/where.js')),
  );
  return part && <part.Where object={object} />;
}

const clock = signal<typeof import('../parts/wrong-clock.js') | null>(null);

/** Few devices have a wrong one. */
function Clock({ object }: { object: FleetObject }) {
  const load = () => loadTexts('where').then(() => import('../parts/wrong-clock.js'));
  const part = usePart(clock, load, Boolean(object.wrongClock));
  return part && <part.WrongClock object={object} />;
}

function Head({ object: { _id } }: { object: FleetObject }) {
  stateRevision.value;
  objectRevision.value;
  const object = objects.get(_id);
  if (object === undefined) return null;
  const state = presenceOf(object);
  return (
    <header class="object-head">
      <div>
        <h1>{object.name}</h1>
        <p class="quiet">
          <span class={`dot ${state}`} />
          <span>{t(`state.${state}`)}</span>
          {object.state && (
            <span>
              {t('object.lastPacket')} <Age ms={object.state.time} />
            </span>
          )}
          <code>{object.id}</code>
          <Clock object={object} />
          {object.status && <span class="tag">{object.status}</span>}
          <Labels labels={labelsOf(object)} />
        </p>
        {placeOf(object) !== null && <Whereabouts object={object} />}
      </div>
      <div class="buttons">
        <Share object={object} />
        {may('GET', '/alarms') && (
          <a class="button" href={toAddress(`/alarms?show=all&object=${object._id}`)}>
            {t('nav.alarms')}
          </a>
        )}
        <a class="button" href={toAddress(`/?object=${object._id}`)}>
          <Icon name="map" /> {t('object.onMap')}
        </a>
      </div>
    </header>
  );
}
