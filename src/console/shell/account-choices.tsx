/** What is in the menu of the user: account, theme, language, log out. Loaded when it is first opened. */
import { Icon, Outline } from '../parts/icon.js';
import type { Caller } from '../state/api.js';
import { toAddress } from '../state/location.js';
import { logOut } from '../state/session.js';
import { setTheme, type Theme, theme } from '../state/theme.js';
import { LANGUAGES, language, setLanguage, t } from '../text/language.js';

/** The icon of an arrow that leaves a room. */
const LEAVE = 'm16 17 5-5-5-5M21 12H9M9 21H5a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2h4';

const THEMES: readonly Theme[] = ['auto', 'light', 'dark'];

export function AccountChoices({ user, onClose }: { user: Caller; onClose: () => void }) {
  return (
    <>
      <p class="menu-head">
        <strong>{user.name || user.login}</strong>
        <small>{user.login}</small>
      </p>
      <a href={toAddress('/account/profile')} onClick={onClose}>
        <Icon name="user" /> {t('account.profile')}
      </a>
      <a href={toAddress('/account/tokens')} onClick={onClose}>
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
        <Outline path={LEAVE} size={18} /> {t('menu.logout')}
      </button>
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
