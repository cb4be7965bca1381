/** The user's own name, address and password, and what the role permits. */
import { useSignal } from '@preact/signals';
import { Field, Form, useWork } from '../parts/form.js';
import { notify } from '../parts/notices.js';
import { Section } from '../parts/tabs.js';
import { call } from '../state/api.js';
import { reloadUser, user } from '../state/session.js';
import { write } from '../state/write.js';
import { t } from '../text/language.js';

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
  const [name, email] = [useSignal(user.value?.name ?? ''), useSignal(user.value?.email ?? '')];
  const work = useWork();
  const save = async (): Promise<void> => {
    await call('PATCH', '/account', { name: name.value, ...(email.value !== '' && { email: email.value }) });
    await reloadUser();
    notify(t('profile.saved'));
  };
  return (
    <Section title={t('profile.details')}>
      <Form work={work} submit={t('action.save')} onSubmit={save}>
        <Field label={t('login.login')} value={user.value?.login ?? ''} onInput={() => undefined} readOnly />
        <Field {...{ label: t('profile.name'), value: name.value, autocomplete: 'name' }} onInput={write(name)} />
        <Field
          {...{ label: t('profile.email'), value: email.value, type: 'email', autocomplete: 'email' }}
          onInput={write(email)}
        />
      </Form>
    </Section>
  );
}

function Password() {
  const [oldPassword, password] = [useSignal(''), useSignal('')];
  const work = useWork();
  const save = async (): Promise<void> => {
    await call('PATCH', '/account', { oldPassword: oldPassword.value, password: password.value });
    [oldPassword.value, password.value] = ['', ''];
    notify(t('profile.passwordSaved'));
  };
  return (
    <Section title={t('login.password')} about={t('profile.passwordAbout')}>
      <Form work={work} submit={t('profile.changePassword')} onSubmit={save}>
        <Field
          {...{ label: t('profile.oldPassword'), value: oldPassword.value, required: true }}
          {...{ type: 'password', autocomplete: 'current-password' }}
          onInput={write(oldPassword)}
        />
        <Field
          {...{ label: t('profile.newPassword'), value: password.value, required: true }}
          {...{ type: 'password', autocomplete: 'new-password' }}
          onInput={write(password)}
        />
      </Form>
    </Section>
  );
}
