/** Everything about one object, in tabs. */

import { useEffect } from 'preact/hooks';
import { isOnline } from '../home/selection.js';
import { Age } from '../parts/age.js';
import { Problem } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { Empty, Skeleton } from '../parts/notices.js';
import { Tabs } from '../parts/tabs.js';
import { VigilError } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import { type FleetObject, loadObject, objectRevision, objects, stateRevision } from '../state/fleet.js';
import { toAddress } from '../state/location.js';
import { may } from '../state/session.js';
import { t } from '../text/language.js';
import { TAB_PARTS, TABS, type Tab, toTab } from './object-tabs.js';

/** What the user's role never permits is not there. */
function isShown(tab: Tab, id: string): boolean {
  if (tab === 'history') return may('GET', `/objects/${id}/packets`);
  if (tab === 'commands') return may('GET', `/objects/${id}/commands`) || may('POST', `/objects/${id}/commands/any`);
  return true;
}

export function ObjectPage({ id = '', tab = 'live' }: { id?: string; tab?: string }) {
  objectRevision.value;
  const known = objects.get(id) ?? [...objects.values()].find((object) => object.id === id);
  const { error } = useFetched(async () => {
    if (known === undefined) await loadObject(id);
  }, [id]);
  useEffect(() => {
    if (known) document.title = `${known.name} · Vigil`;
  }, [known?.name]);
  if (known === undefined) {
    if (error.value instanceof VigilError && error.value.status === 404)
      return <Empty icon="box" title={t('object.notFound')} />;
    return <div class="page">{error.value ? <Problem error={error.value} /> : <Skeleton rows={4} />}</div>;
  }
  const shown = isShown(toTab(tab), known._id) ? toTab(tab) : 'live';
  const Part = TAB_PARTS[shown];
  return (
    <div class="page">
      <Head object={known} />
      <Tabs
        label={known.name}
        path={`/objects/${id}/${shown}`}
        tabs={TABS.filter((one) => isShown(one, known._id)).map((one) => ({
          path: `/objects/${id}/${one}`,
          text: t(`tab.${one}`),
        }))}
      />
      <Part object={known} key={known._id} />
    </div>
  );
}

function Head({ object: { _id } }: { object: FleetObject }) {
  stateRevision.value;
  const object = objects.get(_id);
  if (object === undefined) return null;
  const state = isOnline(object) ? 'online' : 'offline';
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
          {object.status && <span class="tag">{object.status}</span>}
        </p>
      </div>
      <a class="button" href={toAddress(`/?object=${object._id}`)}>
        <Icon name="map" /> {t('object.onMap')}
      </a>
    </header>
  );
}
