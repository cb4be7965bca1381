/** The menu of the user: account, theme, language, log out. */

import { useRef } from 'preact/hooks';
import { Icon } from '../parts/icon.js';
import type { Caller } from '../state/api.js';
import { toAddress } from '../state/location.js';
import { logOut } from '../state/session.js';
import { setTheme, type Theme, theme } from '../state/theme.js';
import { LANGUAGES, language, setLanguage, t } from '../text/language.js';

const THEMES: readonly Theme[] = ['auto', 'light', 'dark'];

export function AccountMenu({ user }: { user: Caller }) {
  const menu = useRef<HTMLDivElement>(null);
  const name = user.name || user.login;
  const close = (): void => menu.current?.hidePopover();
  return (
    <>
      <button type="button" class="avatar" popovertarget="account-menu" aria-label={t('menu.open', { name })}>
        {initials(name)}
      </button>
      <div id="account-menu" class="menu" popover="auto" ref={menu}>
        <p class="menu-head">
          <strong>{name}</strong>
          <small>{user.login}</small>
        </p>
        <a href={toAddress('/account/profile')} onClick={close}>
          <Icon name="user" /> {t('account.profile')}
        </a>
        <a href={toAddress('/account/tokens')} onClick={close}>
          <Icon name="key" /> {t('account.tokens')}
        </a>
        <hr />
        <Choice
          label={t('menu.theme')}
          value={theme.value}
          options={THEMES.map((one) => [one, t(`theme.${one}`)])}
          onChange={(chosen) => setTheme(chosen as Theme)}
        />
        <Choice
          label={t('menu.language')}
          value={language.value}
          options={LANGUAGES}
          onChange={(chosen) => void setLanguage(chosen as 'en' | 'de')}
        />
        <hr />
        <button type="button" onClick={() => void logOut()}>
          <Icon name="logout" /> {t('menu.logout')}
        </button>
      </div>
    </>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [string, string])[];
  readonly onChange: (value: string) => void;
}

function Choice({ label, value, options, onChange }: ChoiceProps) {
  return (
    <fieldset class="choice">
      <legend>{label}</legend>
      <div class="segments">
        {options.map(([option, text]) => (
          <button key={option} type="button" aria-pressed={option === value} onClick={() => onChange(option)}>
            {text}
          </button>
        ))}
      </div>
    </fieldset>
  );
}

const initials = (name: string): string =>
  name
    .split(/[\s._@-]+/)
    .filter(Boolean)
    .slice(0, 2)
    .map((word) => [...word][0]?.toUpperCase())
    .join('');
