/** Stores without a page of their own: labels, webhooks, and those that administrators add. */
import { t } from '../text/language.js';
import { DataTabs } from './data-tabs.js';
import { EntityPage } from './entity-page.js';
import { kindOf } from './kinds.js';

export function Data({ store = 'labels' }: { store?: string }) {
  return (
    <div class="page">
      <h1>{t('nav.data')}</h1>
      <DataTabs store={store} />
      <EntityPage key={store} kind={kindOf(store)} />
    </div>
  );
}
