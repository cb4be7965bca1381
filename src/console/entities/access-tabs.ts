/** The sections of administration, each with an address of its own, as far as the user may open them. */
import { may, pages } from '../state/session.js';
import { t } from '../text/language.js';

const STORES = ['users', 'groups', 'roles', 'tokens', 'audit'] as const;

export const RIGHTS = 'rights';
export const SETTINGS = 'settings';

/** Reading security events requires every method there. */
export const methodOf = (store: string): string => (store === 'audit' ? '*' : 'GET');

export const isReadable = (store: string): boolean => may(methodOf(store), `/${store}`);

export const mayAskRights = (): boolean => may('GET', '/users/any/permissions');

export function accessTabs(): { readonly path: string; readonly text: string }[] {
  const sections = STORES.filter(isReadable).map((store) => ({ section: store as string, text: t(`access.${store}`) }));
  if (mayAskRights()) sections.push({ section: RIGHTS, text: t('rights.tab') });
  if (pages.value.settings) sections.push({ section: SETTINGS, text: t('settings.tab') });
  return sections.map(({ section, text }) => ({ path: `/access/${section}`, text }));
}
