/** Administration: who may use the service, and who did what. */
import { signal } from '@preact/signals';
import { Empty, NotPermitted } from '../parts/notices.js';
import { Tabs } from '../parts/tabs.js';
import { usePart, withTextsOf } from '../state/parts.js';
import { pages } from '../state/session.js';
import { t } from '../text/language.js';
import { accessTabs, isReadable, mayAskRights, methodOf, RIGHTS, SETTINGS } from './access-tabs.js';
import { EntityPage } from './entity-page.js';
import { ACCESS, type EntityKind } from './kinds.js';
import { RightsPage } from './rights.js';

const RIGHTS_REQUEST = 'GET /users/*/permissions';

/** What the role lacks for the section that the address names; null for one that may be read, or that does not exist. */
function lackingFor(section: string | undefined, mayAsk: boolean): string | null {
  if (section === RIGHTS) return mayAsk ? null : RIGHTS_REQUEST;
  if (section === SETTINGS) return pages.value.settings ? null : `* /${SETTINGS}`;
  const kind = ACCESS.find(({ store }) => store === section);
  return kind === undefined || isReadable(kind.store) ? null : `${methodOf(kind.store)} /${kind.store}`;
}

export function Access({ section }: { section?: string }) {
  const kinds = ACCESS.filter(({ store }) => isReadable(store));
  const mayAsk = mayAskRights();
  const lacking = lackingFor(section, mayAsk);
  const shown = lacking === null ? (kinds.find(({ store }) => store === section) ?? kinds[0]) : undefined;
  const isSettings = section === SETTINGS && lacking === null;
  const isRights = mayAsk && !isSettings && (section === RIGHTS || kinds.length === 0);
  if (kinds.length === 0 && !mayAsk) return <Empty icon="shield" title={t('access.notPermitted')} />;
  return (
    <div class="page">
      <h1>{t('nav.access')}</h1>
      <Tabs
        label={t('nav.access')}
        path={`/access/${isSettings ? SETTINGS : isRights ? RIGHTS : shown?.store}`}
        tabs={accessTabs()}
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
  const part = usePart(settings, () => import('../settings/settings.js').then(withTextsOf));
  return part && <part.SettingsPage />;
}
