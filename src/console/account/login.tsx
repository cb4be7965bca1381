/** The login: as a page, and as a dialog over the page when a session has ended. */
import { useSignal } from '@preact/signals';
import { Dialog } from '../parts/dialog.js';
import { Field, Form, useWork } from '../parts/form.js';
import { Logo } from '../shell/logo.js';
import { VigilError } from '../state/api.js';
import { isAskingLogin, leaveSession, logIn, user } from '../state/session.js';
import { write } from '../state/write.js';
import { t } from '../text/language.js';

export function LoginPage() {
  return (
    <main class="login">
      <div class="login-card">
        <Logo size={44} />
        <h1>{t('login.title')}</h1>
        <p class="quiet">{t('login.about')}</p>
        <LoginForm login="" />
      </div>
    </main>
  );
}

export function LoginDialog() {
  if (!isAskingLogin.value) return null;
  return (
    <Dialog title={t('login.again')} onClose={leaveSession}>
      <p class="quiet">{t('login.ended')}</p>
      <LoginForm login={user.value?.login ?? ''} />
    </Dialog>
  );
}

function LoginForm({ login: known }: { login: string }) {
  const login = useSignal(known);
  const password = useSignal('');
  const work = useWork();
  const submit = async (): Promise<void> => {
    try {
      await logIn(login.value.trim(), password.value);
    } catch (error) {
      if (error instanceof VigilError && error.status === 401) throw new Error(t('login.wrong'));
      throw error;
    }
  };
  return (
    <Form work={work} submit={t('login.submit')} onSubmit={submit}>
      <Field
        label={t('login.login')}
        value={login.value}
        onInput={write(login)}
        autocomplete="username"
        required
        autofocus={known === ''}
      />
      <Field
        label={t('login.password')}
        value={password.value}
        onInput={write(password)}
        type="password"
        autocomplete="current-password"
        required
        autofocus={known !== ''}
      />
    </Form>
  );
}
