/** The models that the user sees. */
import { DataTabs } from '../entities/data-tabs.js';
import { EntityPage } from '../entities/entity-page.js';
import { MODELS } from '../entities/kinds.js';
import { NotPermitted } from '../parts/notices.js';
import { may } from '../state/session.js';
import { t } from '../text/language.js';

export function Models() {
  return (
    <div class="page">
      <h1>{t('nav.data')}</h1>
      <DataTabs store="models" />
      {may('GET', '/models') ? <EntityPage kind={MODELS} /> : <NotPermitted request="GET /models/*" />}
    </div>
  );
}
