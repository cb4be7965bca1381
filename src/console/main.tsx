/** The console: restores the session, then shows the page of the address. Share links and walls need no session. */

import { render } from 'preact';
import { App } from './shell/app.js';
import { preloadPage } from './shell/routes.js';
import { requestWithoutLogin } from './state/api.js';
import { startClock } from './state/clock.js';
import { toPath } from './state/location.js';
import { loadPart } from './state/parts.js';
import { mayHaveSession, restoreSession } from './state/session.js';
import { loadTheme } from './state/theme.js';
import { loadLanguage, mendBrowserLanguage } from './text/language.js';

/** The page of a share link, whose visitors have no session. */
const SHARED = /^\/s\/?$/;
/** Saved views on a screen of their own, which has a token. */
const WALL = /^\/wall\//;

async function start(): Promise<void> {
  mendBrowserLanguage();
  loadTheme();
  const element = document.getElementById('console');
  if (element === null) return;
  if (SHARED.test(toPath(location.pathname))) {
    const { showSharedPage } = await loadPart(() => import('./shared/shared-page.js'));
    await showSharedPage(element);
    return;
  }
  if (WALL.test(toPath(location.pathname))) {
    const { showWall } = await loadPart(() => import('./wall/wall-page.js'));
    await showWall(element);
    return;
  }
  startClock(() => {
    if (mayHaveSession()) void requestWithoutLogin('GET /api/v1/auth', {}).catch(() => undefined);
  });
  const session = restoreSession().catch(() => undefined);
  // Together, not one after the other. What fails here is loaded, and reported, where it is shown.
  void preloadPage(toPath(location.pathname)).catch(() => undefined);
  await loadLanguage();
  render(<App />, element);
  await session;
}

void start();
