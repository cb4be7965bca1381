/** Which page is shown: the login, or the page of the address inside the frame. */

import { useEffect } from 'preact/hooks';
import { LocationProvider, Route, Router } from 'preact-iso/router';
import { LoginDialog, LoginPage } from '../account/login.js';
import { Notices } from '../parts/notices.js';
import { followEvents } from '../state/live.js';
import { toAddress } from '../state/location.js';
import { user } from '../state/session.js';
import { prepareNumbers } from '../text/language.js';
import { Frame } from './frame.js';
import { NotFound } from './not-found.js';
import { ROUTES } from './routes.js';

export function App() {
  if (user.value === undefined) return <div class="splash" aria-busy="true" />;
  if (user.value === null) return <LoginPage />;
  return <Console />;
}

function Console() {
  useEffect(() => {
    void followEvents();
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
      <LoginDialog />
      <Notices />
    </LocationProvider>
  );
}
