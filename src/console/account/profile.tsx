/** The user's own name, address and password, and what the role permits. */
import { useSignal } from '@preact/signals';
import { Confirm } from '../parts/confirm.js';
import { Field, Form, useWork } from '../parts/form.js';
import { notify } from '../parts/notices.js';
import { Section } from '../parts/tabs.js';
import { list, request } from '../state/api.js';
import { reloadUser, user } from '../state/session.js';
import { write } from '../state/write.js';
import { t } from '../text/language.js';
import type { Token } from './tokens.js';

export function Profile() {
  return (
    <>
      <Details />
      <Password />
      <Section title={t('profile.rights')} about={t('profile.rightsAbout')}>
        <ul class="scopes">
          {user.value?.credentials.map((credential) => (
            <li key={credential}>
              <code>{credential}</code>
            </li>
          ))}
        </ul>
      </Section>
    </>
  );
}

function Details() {
  const name = useSignal(user.value?.name ?? '');
  const email = useSignal(user.value?.email ?? '');
  const work = useWork();
  const save = async (): Promise<void> => {
    await request('PATCH /api/v1/account', { body: { name: name.value, email: email.value || null } });
    await reloadUser();
    notify(t('profile.saved'));
  };
  return (
    <Section title={t('profile.details')}>
      <Form work={work} submit={t('action.save')} onSubmit={save}>
        <Field label={t('login.login')} value={user.value?.login ?? ''} onInput={() => undefined} readOnly />
        <Field name="name" label={t('profile.name')} value={name.value} autocomplete="name" onInput={write(name)} />
        <Field
          name="email"
          label={t('profile.email')}
          value={email.value}
          type="email"
          autocomplete="email"
          onInput={write(email)}
        />
      </Form>
    </Section>
  );
}

/** So many names of tokens are shown; the others are counted. */
const SHOWN_NAMES = 3;

function namesOf(tokens: readonly Token[]): string {
  const names = tokens.slice(0, SHOWN_NAMES).map(({ name }) => name);
  const hidden = tokens.length - names.length;
  const shown = names.join(', ');
  return hidden > 0 ? t('profile.moreNames', { names: shown, count: hidden }) : shown;
}

function Password() {
  const oldPassword = useSignal('');
  const password = useSignal('');
  const revoked = useSignal<readonly Token[] | null>(null);
  const work = useWork();
  const change = async (tokens: readonly Token[]): Promise<void> => {
    const body = { oldPassword: oldPassword.value, password: password.value };
    await request('PATCH /api/v1/account', { body });
    [oldPassword.value, password.value] = ['', ''];
    notify(tokens.length > 0 ? t('profile.revoked', { names: namesOf(tokens) }) : t('profile.passwordSaved'));
  };
  const submit = async (): Promise<void> => {
    // The console itself uses a session: all tokens are other ones.
    const tokens = await list<Token>('/account/tokens');
    if (tokens.length > 0) revoked.value = tokens;
    else await change(tokens);
  };
  return (
    <Section title={t('login.password')} about={t('profile.passwordAbout')}>
      <Form work={work} submit={t('profile.changePassword')} onSubmit={submit}>
        <Field
          name="oldPassword"
          label={t('profile.oldPassword')}
          value={oldPassword.value}
          required
          type="password"
          autocomplete="current-password"
          onInput={write(oldPassword)}
        />
        <Field
          name="password"
          label={t('profile.newPassword')}
          value={password.value}
          required
          type="password"
          autocomplete="new-password"
          onInput={write(password)}
        />
      </Form>
      {revoked.value && (
        <ConfirmRevocation
          tokens={revoked.value}
          onConfirm={(tokens) => void work.run(() => change(tokens))}
          onClose={() => write(revoked)(null)}
        />
      )}
    </Section>
  );
}

interface ConfirmRevocationProps {
  readonly tokens: readonly Token[];
  /** The form shows what comes of it. */
  readonly onConfirm: (tokens: readonly Token[]) => void;
  readonly onClose: () => void;
}

function ConfirmRevocation({ tokens, onConfirm, onClose }: ConfirmRevocationProps) {
  return (
    <Confirm
      title={t('profile.changePassword')}
      text={t('profile.revokes', { count: tokens.length, names: namesOf(tokens) })}
      action={t('profile.changePassword')}
      onConfirm={async () => onConfirm(tokens)}
      onClose={onClose}
    />
  );
}
