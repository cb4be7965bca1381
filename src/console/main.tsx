/** The console: restores the session, then shows the page of the address. Share links and walls need no session. */

import { render } from 'preact';
import { App } from './shell/app.js';
import { preloadPage } from './shell/routes.js';
import { requestWithoutLogin } from './state/api.js';
import { startClock } from './state/clock.js';
import { toAddress, toPath } from './state/location.js';
import { loadPart } from './state/parts.js';
import { mayHaveSession, restoreSession } from './state/session.js';
import { loadTheme } from './state/theme.js';
import { loadLanguage, mendBrowserLanguage } from './text/language.js';

interface Outside {
  show(element: HTMLElement): Promise<void>;
}

/** What is shown without a session: an object to the visitors of a share link, saved views on a screen that has a token. */
function loadOutside(path: string): (() => Promise<Outside>) | null {
  if (/^\/s\/?$/.test(path)) return () => import('./shared/shared-page.js');
  return path.startsWith('/wall/') ? () => import('./wall/wall-page.js') : null;
}

async function start(): Promise<void> {
  mendBrowserLanguage();
  loadTheme();
  const element = document.getElementById('console');
  if (element === null) return;
  const path = toPath(location.pathname);
  const load = loadOutside(path);
  if (load !== null) return (await loadPart(load)).show(element);
  startClock(() => {
    if (mayHaveSession()) void requestWithoutLogin('GET /api/v1/auth', {}).catch(() => undefined);
  });
  if (matchMedia('(display-mode: standalone)').matches) {
    void navigator.serviceWorker?.register(toAddress('/service-worker.js'));
  }
  const session = restoreSession().catch(() => undefined);
  const language = loadLanguage();
  // Together, not one after the other. What fails here is loaded, and reported, where it is shown.
  void preloadPage(path).catch(() => undefined);
  await language;
  render(<App />, element);
  await session;
}

void start();
