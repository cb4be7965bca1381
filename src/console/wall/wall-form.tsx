/** Makes the address of a wall: which views it shows in turns, and for how long. */
import { useSignal } from '@preact/signals';
import { mayGrant } from '../../core/grants.js';
import { LIFETIME_DAYS, toLifetimeMs } from '../account/token-scopes.js';
import type { SavedView } from '../home/saved-views.js';
import { CopyBox } from '../parts/copy.js';
import { Field, Form, Select, useWork } from '../parts/form.js';
import { request } from '../state/api.js';
import { user } from '../state/session.js';
import { write } from '../state/write.js';
import { formatDateTime, loadTexts, type TextLoader, t, tn } from '../text/language.js';
import { EVERY_S, toWallAddress } from './wall-address.js';

const WALL_TEXTS: TextLoader = {
  en: () => import('../text/english-wall.js'),
  de: () => import('../text/german-wall.js'),
};

/** Before it is shown. */
export const loadOwnTexts = (): Promise<void> => loadTexts(WALL_TEXTS);

/** What a wall reads. Those that its user may not read are left out. */
const READ = [
  'auth',
  'views/*',
  'objects',
  'objects/:id',
  'objects/:id/model',
  'objects/:id/packets/*',
  'objects/:id/series',
  'series',
  'alarms',
  'models/*',
  'geofences',
  'labels',
  'groups',
];
const SCOPES = READ.map((path) => `GET /${path}`);

interface Made {
  readonly address: string;
  readonly expiresAtMs: number;
}

export function WallForm({ views, onClose }: { views: readonly SavedView[]; onClose: () => void }) {
  const made = useSignal<Made | null>(null);
  const work = useWork();
  const chosen = useSignal<readonly string[]>(views.length === 1 ? views.map(({ _id }) => _id) : []);
  const everyS = useSignal(String(EVERY_S));
  const days = useSignal('90');
  const make = async (): Promise<void> => {
    const caller = user.value;
    if (!caller) return;
    const names = views.filter(({ _id }) => chosen.value.includes(_id)).map(({ name }) => name);
    const { token, expiresAt } = await request('POST /api/v1/account/tokens', {
      body: {
        name: t('wall.tokenName', { names: names.join(', ') }).slice(0, NAME_CHARACTERS),
        expiresIn: toLifetimeMs(days.value),
        scopes: SCOPES.filter((scope) => mayGrant(caller, [scope])),
      },
    });
    made.value = { address: toWallAddress(chosen.value, Number(everyS.value), token), expiresAtMs: expiresAt };
  };
  if (made.value !== null) return <Shown made={made.value} onClose={onClose} />;
  return (
    <Form work={work} submit={t('wall.make')} onSubmit={make} onCancel={onClose} disabled={chosen.value.length === 0}>
      <p class="quiet">{t('wall.about')}</p>
      <fieldset class="options">
        <legend>{t('wall.views')}</legend>
        {views.map(({ _id, name }) => (
          <label key={_id} class="option">
            <input
              type="checkbox"
              checked={chosen.value.includes(_id)}
              onChange={() => write(chosen)(toggled(chosen.value, _id))}
            />
            <span>{name}</span>
          </label>
        ))}
      </fieldset>
      {chosen.value.length > 1 && (
        <Field label={t('wall.every')} type="number" value={everyS.value} onInput={write(everyS)} required />
      )}
      <Select
        label={t('wall.lifetime')}
        value={days.value}
        options={LIFETIME_DAYS.map((count) => [String(count), tn('unit.day', count)])}
        onChange={write(days)}
      />
    </Form>
  );
}

const NAME_CHARACTERS = 100;

/** In the order in which they were chosen. */
const toggled = (chosen: readonly string[], id: string): readonly string[] =>
  chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id];

function Shown({ made: { address, expiresAtMs }, onClose }: { made: Made; onClose: () => void }) {
  return (
    <div class="form">
      <p class="hint warn">{t('wall.once', { time: formatDateTime(expiresAtMs) })}</p>
      <CopyBox text={address} label={t('wall.address')} />
      <div class="form-actions">
        <button type="button" class="button primary" onClick={onClose}>
          {t('wall.kept')}
        </button>
      </div>
    </div>
  );
}
