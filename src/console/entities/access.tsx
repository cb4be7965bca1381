/** Administration: who may use the service, and who did what. */
import { Empty, NotPermitted } from '../parts/notices.js';
import { Tabs } from '../parts/tabs.js';
import { may } from '../state/session.js';
import { t } from '../text/language.js';
import { EntityPage } from './entity-page.js';
import { ACCESS, type EntityKind } from './kinds.js';
import { RightsPage } from './rights.js';

/** Reading security events requires every method there. */
const methodOf = ({ store }: EntityKind): string => (store === 'audit' ? '*' : 'GET');

export const isReadable = (kind: EntityKind): boolean => may(methodOf(kind), `/${kind.store}`);

const RIGHTS = 'rights';
const RIGHTS_REQUEST = 'GET /users/*/permissions';

/** What the role lacks for the section that the address names; null for one that may be read, or that does not exist. */
function lackingFor(section: string | undefined, mayAsk: boolean): string | null {
  if (section === RIGHTS) return mayAsk ? null : RIGHTS_REQUEST;
  const kind = ACCESS.find(({ store }) => store === section);
  return kind === undefined || isReadable(kind) ? null : `${methodOf(kind)} /${kind.store}`;
}

export function Access({ section }: { section?: string }) {
  const kinds = ACCESS.filter(isReadable);
  const mayAsk = may('GET', '/users/any/permissions');
  const lacking = lackingFor(section, mayAsk);
  const shown = lacking === null ? (kinds.find(({ store }) => store === section) ?? kinds[0]) : undefined;
  const isRights = mayAsk && (section === RIGHTS || kinds.length === 0);
  if (kinds.length === 0 && !mayAsk) return <Empty icon="shield" title={t('access.notPermitted')} />;
  const stores = kinds.map(({ store, title }) => ({ path: `/access/${store}`, text: t(title) }));
  return (
    <div class="page">
      <h1>{t('nav.access')}</h1>
      <Tabs
        label={t('nav.access')}
        path={`/access/${isRights ? RIGHTS : shown?.store}`}
        tabs={[...stores, ...(mayAsk ? [{ path: `/access/${RIGHTS}`, text: t('rights.tab') }] : [])]}
      />
      {lacking !== null && <NotPermitted request={lacking} />}
      {lacking === null && (isRights ? <RightsPage /> : shown && <EntityPage key={shown.store} kind={shown} />)}
    </div>
  );
}
