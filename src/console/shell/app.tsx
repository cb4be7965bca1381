/** Which page is shown: the login, or the page of the address inside the frame. */

import { useEffect } from 'preact/hooks';
import { LocationProvider, lazy, Route, Router } from 'preact-iso';
import { LoginDialog, LoginPage } from '../account/login.js';
import { Home } from '../home/home.js';
import { Notices } from '../parts/notices.js';
import { followEvents } from '../state/live.js';
import { user } from '../state/session.js';
import { Frame } from './frame.js';
import { NotFound } from './not-found.js';

const Account = lazy(() => import('../account/account.js').then(({ Account }) => Account));
const Access = lazy(() => import('../entities/access.js').then(({ Access }) => Access));
const Data = lazy(() => import('../entities/data.js').then(({ Data }) => Data));
const Geofences = lazy(() => import('../geofences/geofences.js').then(({ Geofences }) => Geofences));
const Log = lazy(() => import('../log/log.js').then(({ Log }) => Log));
const ModelPage = lazy(() => import('../models/model-page.js').then(({ ModelPage }) => ModelPage));
const Models = lazy(() => import('../models/models.js').then(({ Models }) => Models));
const ObjectPage = lazy(() => import('../objects/object-page.js').then(({ ObjectPage }) => ObjectPage));
const Welcome = lazy(() => import('../welcome/welcome.js').then(({ Welcome }) => Welcome));

export function App() {
  if (user.value === undefined) return <div class="splash" aria-busy="true" />;
  if (user.value === null) return <LoginPage />;
  return <Console />;
}

function Console() {
  useEffect(() => void followEvents(), []);
  return (
    <LocationProvider>
      <Frame>
        <Router>
          <Route path="/" component={Home} />
          <Route path="/welcome" component={Welcome} />
          <Route path="/objects/:id" component={ObjectPage} />
          <Route path="/objects/:id/:tab" component={ObjectPage} />
          <Route path="/access" component={Access} />
          <Route path="/access/:section" component={Access} />
          <Route path="/data" component={Data} />
          <Route path="/data/:store" component={Data} />
          <Route path="/geofences" component={Geofences} />
          <Route path="/log" component={Log} />
          <Route path="/models" component={Models} />
          <Route path="/models/:id" component={ModelPage} />
          <Route path="/account" component={Account} />
          <Route path="/account/:section" component={Account} />
          <Route default component={NotFound} />
        </Router>
      </Frame>
      <LoginDialog />
      <Notices />
    </LocationProvider>
  );
}
