/** Connects the device of an object: a token or an MQTT password, made here and shown once, with the commands that use it. */
import { useSignal } from '@preact/signals';
import { deviceScopes, mayMakeToken } from '../account/token-scopes.js';
import { CopyBox } from '../parts/copy.js';
import { Problem, useWork } from '../parts/form.js';
import { notify } from '../parts/notices.js';
import { Section } from '../parts/tabs.js';
import { request } from '../state/api.js';
import type { FleetObject } from '../state/fleet.js';
import { may } from '../state/session.js';
import { t } from '../text/language.js';
import { Snippets } from '../welcome/snippets.js';
import { ensureOfflineAfter, OFFLINE_AFTER } from './offline-after.js';

const YEAR_MS = 365 * 86_400_000;
const PASSWORD_BYTES = 18;

/** The browser's own random source. */
function createPassword(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(PASSWORD_BYTES));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_');
}

interface ConnectDeviceProps {
  readonly object: FleetObject;
  /** Called when the object has got another `offlineAfter`. */
  readonly onConnect: () => void;
}

export function ConnectDevice({ object, onConnect }: ConnectDeviceProps) {
  const token = useSignal<string | null>(null);
  const password = useSignal<string | null>(null);
  const work = useWork();
  const scopes = deviceScopes([object.id, object._id]);
  const path = `/objects/${object._id}`;
  const ensure = async (): Promise<void> => {
    if (!may('PATCH', path) || !(await ensureOfflineAfter(object._id))) return;
    notify(t('settings.offlineAfterSet', { duration: OFFLINE_AFTER }));
    onConnect();
  };
  const makeToken = async (): Promise<void> => {
    const wanted = { name: object.name, scopes, expiresIn: YEAR_MS };
    token.value = (await request('POST /api/v1/account/tokens', { body: wanted })).token;
    await ensure();
  };
  const makePassword = async (): Promise<void> => {
    const made = createPassword();
    const body = { config: { auth: { username: 'device', password: made } } };
    await request('PATCH /api/v1/objects/{id}', { path: { id: object._id }, body });
    password.value = made;
    await ensure();
  };
  const mayToken = mayMakeToken(scopes);
  return (
    <Section title={t('object.connect')} about={t('settings.connectAbout')}>
      <div class="form">
        <div class="buttons">
          {mayToken && (
            <button type="button" class="button primary" onClick={() => void work.run(makeToken)}>
              {t('settings.makeToken')}
            </button>
          )}
          {may('PATCH', path) && (
            <button type="button" class="button" onClick={() => void work.run(makePassword)}>
              {t('settings.makePassword')}
            </button>
          )}
        </div>
        {!mayToken && <p class="hint">{t('settings.noToken')}</p>}
        <Problem error={work.error.value} />
        {(token.value ?? password.value) && <p class="hint warn">{t('settings.once')}</p>}
        {password.value && <CopyBox text={`device\n${password.value}`} label={t('settings.makePassword')} />}
        {token.value && <Snippets id={object.id} token={token.value} />}
      </div>
    </Section>
  );
}
