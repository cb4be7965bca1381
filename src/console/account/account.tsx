/** The personal account: profile, channels, tokens, sessions. */
import lazy from 'preact-iso/lazy';
import { Tabs } from '../parts/tabs.js';
import { loadPage } from '../state/parts.js';
import { loadTexts, type TextLoader, t } from '../text/language.js';
import { Profile } from './profile.js';
import { Sessions } from './sessions.js';
import { Tokens } from './tokens.js';

const SECTIONS = ['profile', 'channels', 'tokens', 'sessions'] as const;

const CHANNELS_TEXTS: TextLoader = {
  en: () => import('../text/english-channels.js'),
  de: () => import('../text/german-channels.js'),
};

const Channels = lazy(() =>
  loadPage(async () => (await Promise.all([import('./channels.js'), loadTexts(CHANNELS_TEXTS)]))[0].Channels),
);

export function Account({ section = 'profile' }: { section?: string }) {
  const shown = SECTIONS.find((one) => one === section) ?? 'profile';
  return (
    <div class="page narrow">
      <h1>{t('nav.account')}</h1>
      <Tabs
        label={t('nav.account')}
        path={`/account/${shown}`}
        tabs={SECTIONS.map((one) => ({ path: `/account/${one}`, text: t(`account.${one}`) }))}
      />
      {shown === 'profile' && <Profile />}
      {shown === 'channels' && <Channels />}
      {shown === 'tokens' && <Tokens />}
      {shown === 'sessions' && <Sessions />}
    </div>
  );
}
