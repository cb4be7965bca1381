/** Which page is shown: the login, or the page of the address inside the frame. */

import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { LocationProvider, Route, Router } from 'preact-iso/router';
import { Empty, Notices } from '../parts/notices.js';
import { followAlarms, SOUND_STORED } from '../state/alarms.js';
import { isOffline } from '../state/api.js';
import { followEvents } from '../state/live.js';
import { toAddress } from '../state/location.js';
import { loadPart } from '../state/parts.js';
import { isAskingLogin, user } from '../state/session.js';
import { write } from '../state/write.js';
import { loadTexts, prepareNumbers, t } from '../text/language.js';
import { Frame } from './frame.js';
import { NotFound } from './not-found.js';
import { ROUTES } from './routes.js';

export function App() {
  if (user.value === undefined) return isOffline.value ? <Unreachable /> : <div class="splash" aria-busy="true" />;
  if (user.value === null) return <Login isAgain={false} />;
  return <Console user={user.value._id} />;
}

/** Until it is known who uses the console, there is nothing to show without the server. */
const Unreachable = () => (
  <Empty icon="clock" title={t('offline.server')}>
    <button type="button" class="button" onClick={() => dispatchEvent(new Event('online'))}>
      {t('action.retry')}
    </button>
  </Empty>
);

const login = signal<typeof import('../account/login.js') | null>(null);

const loadLogin = async () => (await Promise.all([import('../account/login.js'), loadTexts('pages')]))[0];

/** Most pages do without. */
function Login({ isAgain }: { isAgain: boolean }) {
  useEffect(() => {
    if (login.peek() === null) void loadPart(loadLogin).then(write(login));
  }, []);
  if (login.value === null) return <div class="splash" aria-busy="true" />;
  return isAgain ? <login.value.LoginDialog /> : <login.value.LoginPage />;
}

function Console({ user }: { user: string }) {
  useEffect(() => {
    followAlarms();
    if (localStorage.getItem(SOUND_STORED) !== null) void loadPart(() => import('../alarms/sound.js'));
    void followEvents(user);
    prepareNumbers();
  }, []);
  return (
    <LocationProvider>
      <Frame>
        <Router>
          {ROUTES.map(([path, page]) => (
            <Route key={path} path={toAddress(path)} component={page} />
          ))}
          <Route default component={NotFound} />
        </Router>
      </Frame>
      {isAskingLogin.value && <Login isAgain={true} />}
      <Notices />
    </LocationProvider>
  );
}
