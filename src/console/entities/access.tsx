/** Administration: who may use the service, and who did what. */
import { signal } from '@preact/signals';
import { Empty, NotPermitted } from '../parts/notices.js';
import { Tabs } from '../parts/tabs.js';
import { usePart } from '../state/parts.js';
import { may, pages } from '../state/session.js';
import { loadTexts, t } from '../text/language.js';
import { EntityPage } from './entity-page.js';
import { ACCESS, type EntityKind } from './kinds.js';
import { RightsPage } from './rights.js';

/** Reading security events requires every method there. */
const methodOf = ({ store }: EntityKind): string => (store === 'audit' ? '*' : 'GET');

export const isReadable = (kind: EntityKind): boolean => may(methodOf(kind), `/${kind.store}`);

const RIGHTS = 'rights';
const SETTINGS = 'settings';
const RIGHTS_REQUEST = 'GET /users/*/permissions';

/** What the role lacks for the section that the address names; null for one that may be read, or that does not exist. */
function lackingFor(section: string | undefined, mayAsk: boolean): string | null {
  if (section === RIGHTS) return mayAsk ? null : RIGHTS_REQUEST;
  if (section === SETTINGS) return pages.value.settings ? null : `* /${SETTINGS}`;
  const kind = ACCESS.find(({ store }) => store === section);
  return kind === undefined || isReadable(kind) ? null : `${methodOf(kind)} /${kind.store}`;
}

export function Access({ section }: { section?: string }) {
  const kinds = ACCESS.filter(isReadable);
  const mayAsk = may('GET', '/users/any/permissions');
  const lacking = lackingFor(section, mayAsk);
  const shown = lacking === null ? (kinds.find(({ store }) => store === section) ?? kinds[0]) : undefined;
  const isSettings = section === SETTINGS && lacking === null;
  const isRights = mayAsk && !isSettings && (section === RIGHTS || kinds.length === 0);
  if (kinds.length === 0 && !mayAsk) return <Empty icon="shield" title={t('access.notPermitted')} />;
  const stores = kinds.map(({ store, title }) => ({ path: `/access/${store}`, text: t(title) }));
  return (
    <div class="page">
      <h1>{t('nav.access')}</h1>
      <Tabs
        label={t('nav.access')}
        path={`/access/${isSettings ? SETTINGS : isRights ? RIGHTS : shown?.store}`}
        tabs={[
          ...stores,
          ...(mayAsk ? [{ path: `/access/${RIGHTS}`, text: t('rights.tab') }] : []),
          ...(pages.value.settings ? [{ path: `/access/${SETTINGS}`, text: t('settings.tab') }] : []),
        ]}
      />
      {lacking !== null && <NotPermitted request={lacking} />}
      {lacking === null && <Shown isSettings={isSettings} isRights={isRights} kind={shown} />}
    </div>
  );
}

interface ShownProps {
  readonly isSettings: boolean;
  readonly isRights: boolean;
  readonly kind: EntityKind | undefined;
}

function Shown({ isSettings, isRights, kind }: ShownProps) {
  if (isSettings) return <Settings />;
  if (isRights) return <RightsPage />;
  return kind === undefined ? null : <EntityPage key={kind.store} kind={kind} />;
}

const settings = signal<typeof import('../settings/settings.js') | null>(null);

/** Few people open them. */
function Settings() {
  const part = usePart(settings, () => loadTexts('settings').then(() => import('../settings/settings.js')));
  return part && <part.SettingsPage />;
}
