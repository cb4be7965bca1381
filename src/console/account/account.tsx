/** The personal account: profile, tokens, sessions. */
import { Tabs } from '../parts/tabs.js';
import { t } from '../text/language.js';
import { Profile } from './profile.js';
import { Sessions } from './sessions.js';
import { Tokens } from './tokens.js';

const SECTIONS = ['profile', 'tokens', 'sessions'] as const;

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
      {shown === 'tokens' && <Tokens />}
      {shown === 'sessions' && <Sessions />}
    </div>
  );
}
