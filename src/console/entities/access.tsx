/** Administration: who may use the service, and who did what. */
import { Empty } from '../parts/notices.js';
import { Tabs } from '../parts/tabs.js';
import { may } from '../state/session.js';
import { t } from '../text/language.js';
import { EntityPage } from './entity-page.js';
import { ACCESS, type EntityKind } from './kinds.js';
import { RightsPage } from './rights.js';

/** Reading security events requires every method there. */
export const isReadable = ({ store }: EntityKind): boolean => may(store === 'audit' ? '*' : 'GET', `/${store}`);

const RIGHTS = 'rights';

export function Access({ section = 'users' }: { section?: string }) {
  const kinds = ACCESS.filter(isReadable);
  const mayAsk = may('GET', '/users/any/permissions');
  const shown = kinds.find(({ store }) => store === section) ?? kinds[0];
  const isRights = mayAsk && (section === RIGHTS || shown === undefined);
  if (shown === undefined && !isRights) return <Empty icon="shield" title={t('access.notPermitted')} />;
  const stores = kinds.map(({ store, title }) => ({ path: `/access/${store}`, text: t(title) }));
  return (
    <div class="page">
      <h1>{t('nav.access')}</h1>
      <Tabs
        label={t('nav.access')}
        path={`/access/${isRights ? RIGHTS : shown?.store}`}
        tabs={[...stores, ...(mayAsk ? [{ path: `/access/${RIGHTS}`, text: t('rights.tab') }] : [])]}
      />
      {isRights ? <RightsPage /> : shown && <EntityPage key={shown.store} kind={shown} />}
    </div>
  );
}
