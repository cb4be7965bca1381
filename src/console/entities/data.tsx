/** Stores without a page of their own: labels, webhooks, and those that administrators add. */
import { call, type Entity, toQuery } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import { may } from '../state/session.js';
import { t } from '../text/language.js';
import { DataTabs } from './data-tabs.js';
import { EntityPage } from './entity-page.js';
import { isBuiltInStore, kindOf } from './kinds.js';

export function Data({ store = 'labels' }: { store?: string }) {
  const { data } = useFetched(() => schemaOf(store), [store]);
  return (
    <div class="page">
      <h1>{t('nav.data')}</h1>
      <DataTabs store={store} />
      <EntityPage key={store} kind={kindOf(store, data.value)} />
    </div>
  );
}

/** The schema of a store that an administrator added; null where the user may not read it. */
async function schemaOf(store: string): Promise<unknown> {
  if (isBuiltInStore(store) || !may('GET', '/stores')) return null;
  const query = toQuery({ 'where.name': JSON.stringify(store), only: 'name,schema', limit: 1 });
  const [found] = await call<Entity[]>('GET', `/stores${query}`);
  return found?.schema ?? null;
}
