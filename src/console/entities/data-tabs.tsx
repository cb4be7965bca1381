/** The stores of the data pages, each with an address of its own. */
import { Tabs } from '../parts/tabs.js';
import { namedOf } from '../state/references.js';
import { may } from '../state/session.js';
import { t } from '../text/language.js';

const BUILT_IN = ['models', 'geofences', 'rules', 'labels', 'handlers', 'sources', 'stores'];
/** They have pages of their own. */
const OWN_PAGE = new Set(['models', 'geofences', 'rules']);

export const pathOf = (store: string): string => (OWN_PAGE.has(store) ? `/${store}` : `/data/${store}`);

/** Those that the user may read. */
export function readableStores(): string[] {
  const names = [...BUILT_IN, ...namedOf('stores').flatMap(({ name }) => name ?? [])];
  return [...new Set(names)].filter((name) => may('GET', `/${name}`));
}

export function DataTabs({ store }: { store: string }) {
  const tabs = readableStores().map((name) => ({ path: pathOf(name), text: titleOfStore(name) }));
  if (may('POST', '/objects')) tabs.push({ path: pathOf('objects'), text: t('data.import') });
  return <Tabs label={t('nav.data')} path={pathOf(store)} tabs={tabs} />;
}

export function titleOfStore(name: string): string {
  if (name === 'models') return t('data.models');
  if (name === 'geofences') return t('data.geofences');
  if (name === 'rules') return t('data.rules');
  if (name === 'labels') return t('data.labels');
  if (name === 'handlers') return t('data.handlers');
  if (name === 'sources') return t('data.sources');
  return name === 'stores' ? t('data.stores') : name;
}
