/** Stores without a page of their own: labels, webhooks, and those that administrators add. */
import { signal } from '@preact/signals';
import { NotPermitted } from '../parts/notices.js';
import { list } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import { usePart, withTextsOf } from '../state/parts.js';
import { may, user } from '../state/session.js';
import { t } from '../text/language.js';
import { DataTabs } from './data-tabs.js';
import { EntityPage } from './entity-page.js';
import { isBuiltInStore, kindOf } from './kinds.js';

const MOST_NAMESAKES = 100;

export function Data({ store = 'labels' }: { store?: string }) {
  return (
    <div class="page">
      <h1>{t('nav.data')}</h1>
      <DataTabs store={store} />
      {store === 'objects' ? <Import /> : <StoreEntities store={store} />}
    </div>
  );
}

function StoreEntities({ store }: { store: string }) {
  const { data } = useFetched(async () => ({ store, schema: await schemaOf(store) }), [store]);
  // Until it is there, what was fetched is that of the store before.
  const schema = data.value?.store === store ? data.value.schema : null;
  if (!may('GET', `/${store}`)) return <NotPermitted request={`GET /${store}/*`} />;
  return <EntityPage key={store} kind={kindOf(store, schema)} />;
}

const importPart = signal<typeof import('../import/import.js') | null>(null);

/** Objects have pages of their own: here they come from a file, which few people need. */
function Import() {
  const part = usePart(importPart, () => import('../import/import.js').then(withTextsOf));
  return part && <part.Import />;
}

/** The schema of a store that an administrator added; null where the user may not read it, or sees several stores of this name and has none. */
async function schemaOf(store: string): Promise<unknown> {
  if (isBuiltInStore(store) || !may('GET', '/stores')) return null;
  const query = { where: { name: store }, only: ['group', 'schema'], limit: MOST_NAMESAKES };
  const found = await list('/stores', query);
  const own = found.find(({ group }) => group === user.value?.group);
  return (own ?? (found.length === 1 ? found[0] : undefined))?.schema ?? null;
}
