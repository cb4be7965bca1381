/** Makes a token, and shows it once. */

import { useSignal } from '@preact/signals';
import { useId } from 'preact/hooks';
import { CopyBox } from '../parts/copy.js';
import { Dialog } from '../parts/dialog.js';
import { FieldError } from '../parts/field-errors.js';
import { Field, Form, Select, useWork } from '../parts/form.js';
import { Permissions } from '../roles/permissions.js';
import { request } from '../state/api.js';
import { objects } from '../state/fleet.js';
import { toAddress } from '../state/location.js';
import { user } from '../state/session.js';
import { write } from '../state/write.js';
import { formatDateTime, t, tn } from '../text/language.js';
import { ObjectField } from './object-field.js';
import {
  deviceScopes,
  LIFETIME_DAYS,
  mayMakeToken,
  PRESETS,
  type Preset,
  READ_SCOPES,
  toLifetimeMs,
  toLines,
} from './token-scopes.js';

interface Made {
  readonly token: string;
  readonly name: string;
  readonly expiresAt: number;
}

export function NewToken({ onMade, onClose }: { onMade: () => void; onClose: () => void }) {
  const made = useSignal<Made | null>(null);
  return (
    <Dialog
      title={made.value ? made.value.name : t('tokens.new')}
      onClose={onClose}
      size="medium"
      canClose={!made.value}
    >
      {made.value ? (
        <Shown made={made.value} onClose={onClose} />
      ) : (
        <TokenForm
          onMade={(token) => {
            made.value = token;
            onMade();
          }}
          onClose={onClose}
        />
      )}
    </Dialog>
  );
}

function useTokenFields() {
  const name = useSignal('');
  const days = useSignal('90');
  const custom = useSignal('GET /objects/*');
  const preset = useSignal<Preset>(objects.size > 0 && mayMakeToken(deviceScopes(['any'])) ? 'device' : 'all');
  const objectId = useSignal<string | null>(null);
  const toScopes = (): string[] | null => {
    if (preset.value === 'all') return user.value?.scopes ? [...user.value.scopes] : null;
    if (preset.value === 'read') return READ_SCOPES;
    if (preset.value === 'custom') return toLines(custom.value);
    const object = objects.get(objectId.value ?? '');
    if (object === undefined) throw new FieldError('object', t('tokens.chooseObject'));
    return deviceScopes([object.id, object._id]);
  };
  return { name, days, custom, preset, objectId, toScopes };
}

function TokenForm({ onMade, onClose }: { onMade: (made: Made) => void; onClose: () => void }) {
  const { name, days, custom, preset, objectId, toScopes } = useTokenFields();
  const work = useWork();
  const submit = async (): Promise<void> => {
    const scopes = toScopes();
    const expiresIn = toLifetimeMs(days.value);
    onMade(
      await request('POST /api/v1/account/tokens', {
        body: { name: name.value.trim(), expiresIn, ...(scopes && { scopes }) },
      }),
    );
  };
  return (
    <Form work={work} submit={t('tokens.make')} onSubmit={submit} onCancel={onClose}>
      <Field
        name="name"
        label={t('tokens.name')}
        hint={t('tokens.nameHint')}
        value={name.value}
        required
        autofocus
        onInput={write(name)}
      />
      <Presets
        preset={preset.value}
        onChoose={(chosen) => {
          preset.value = chosen;
          work.error.value = null;
        }}
      />
      {preset.value === 'device' && <ObjectField label={t('tokens.object')} onChoose={write(objectId)} />}
      {preset.value === 'custom' && (
        <Permissions
          name="scopes"
          label={t('tokens.scopes')}
          hint={t('tokens.scopesHint')}
          value={custom.value}
          entity={null}
          onInput={write(custom)}
        />
      )}
      <Select
        label={t('tokens.lifetime')}
        value={days.value}
        options={LIFETIME_DAYS.map((count) => [String(count), tn('unit.day', count)])}
        onChange={write(days)}
      />
    </Form>
  );
}

function Presets({ preset, onChoose }: { preset: Preset; onChoose: (preset: Preset) => void }) {
  const group = useId();
  return (
    <fieldset class="options">
      <legend>{t('tokens.permits')}</legend>
      {PRESETS.map((one) => (
        <label key={one} class="option">
          <input type="radio" name={group} checked={preset === one} onChange={() => onChoose(one)} />
          <span>
            <strong>{t(`preset.${one}`)}</strong>
            <small class="quiet">{t(`preset.${one}About`)}</small>
          </span>
        </label>
      ))}
    </fieldset>
  );
}

function Shown({ made, onClose }: { made: Made; onClose: () => void }) {
  const command = `curl -H 'Authorization: Bearer ${made.token}' ${location.origin}${toAddress('/api/v1/objects')}`;
  return (
    <div class="form">
      <p class="hint warn">{t('tokens.once')}</p>
      <CopyBox text={made.token} label={t('tokens.token')} />
      <details>
        <summary>{t('tokens.use')}</summary>
        <CopyBox text={command} label={t('tokens.use')} />
      </details>
      <p class="quiet">{t('tokens.until', { time: formatDateTime(made.expiresAt) })}</p>
      <div class="form-actions">
        <button type="button" class="button primary" onClick={onClose}>
          {t('tokens.kept')}
        </button>
      </div>
    </div>
  );
}
