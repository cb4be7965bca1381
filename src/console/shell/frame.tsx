/** What surrounds every page: the name, the navigation, whether events arrive, and the user's own menu. */
import { signal, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { SeenUntil } from '../parts/age.js';
import { Icon, type IconName } from '../parts/icon.js';
import { Empty } from '../parts/notices.js';
import { waitingCount } from '../state/alarms.js';
import { isOffline } from '../state/api.js';
import { currentUntilMs, liveStatus, tryAgain } from '../state/live.js';
import { toAddress, useLocation } from '../state/location.js';
import { missingPage, usePart } from '../state/parts.js';
import { pages, user } from '../state/session.js';
import { titleOfPage } from '../state/title.js';
import { formatNumber, loadTexts, type TextKey, t } from '../text/language.js';
import { AccountMenu } from './account-menu.js';
import { Logo } from './logo.js';

interface Page {
  readonly path: string;
  readonly text: TextKey;
  readonly icon: IconName;
  /** Where else it is: paths, and everything below them. */
  readonly also?: readonly string[];
}

const MAP: Page = { path: '/', text: 'nav.map', icon: 'map', also: ['/objects', '/compare'] };
const ALARMS: Page = { path: '/alarms', text: 'nav.alarms', icon: 'bell' };
const LOG: Page = { path: '/log', text: 'nav.log', icon: 'activity' };

const REPORTS: Page = { path: '/reports', text: 'nav.reports', icon: 'list' };

const ACCESS: Page = { path: '/access', text: 'nav.access', icon: 'shield' };

/** What the user may never open is not there. */
function pagesOfUser(): Page[] {
  const { objects, alarms, users, roles } = pages.value;
  return [
    ...(objects ? [MAP] : []),
    ...(alarms ? [ALARMS] : []),
    ...(objects ? [REPORTS, LOG] : []),
    ...dataPage(),
    ...(users || roles ? [ACCESS] : []),
    { path: '/account', text: 'nav.account', icon: 'key' },
  ];
}

/** The data pages, from the first one that the user may open. */
function dataPage(): Page[] {
  const { models, geofences, stores } = pages.value;
  const path = models ? '/models' : geofences ? '/geofences' : stores ? '/data/stores' : null;
  return path === null
    ? []
    : [{ path, text: 'nav.data', icon: 'database', also: ['/models', '/geofences', '/rules', '/data'] }];
}

const isAt = (path: string, page: Page): boolean =>
  [page.path, ...(page.also ?? [])].some((one) => path === one || (one !== '/' && path.startsWith(`${one}/`)));

export function Frame({ children }: { children: ComponentChildren }) {
  const { path } = useLocation();
  const page = pagesOfUser().find((one) => isAt(path, one));
  const title = titleOfPage.value ?? (page && t(page.text));
  useEffect(() => {
    const count = waitingCount.value > 0 ? `(${formatNumber(waitingCount.value)}) ` : '';
    document.title = `${count}${title ? `${title} · ` : ''}Vigil`;
  }, [title, waitingCount.value]);
  return (
    <div class="frame">
      <a class="skip" href="#main">
        {t('nav.skip')}
      </a>
      <header class="top">
        <a class="brand" href={toAddress('/')} aria-label={t('nav.brand')}>
          <Logo />
          <span>Vigil</span>
        </a>
        <nav class="nav" aria-label={t('nav.label')}>
          {pagesOfUser().map((page) => (
            <a key={page.path} href={toAddress(page.path)} aria-current={isAt(path, page) ? 'page' : undefined}>
              <Icon name={page.icon} />
              <span>{t(page.text)}</span>
              {page === ALARMS && <Waiting />}
            </a>
          ))}
        </nav>
        <div class="top-end">
          <Status />
          {user.value && <AccountMenu user={user.value} />}
        </div>
      </header>
      <Lost />
      <main id="main" class={missingPage.value === path ? 'main missing' : 'main'} tabIndex={-1}>
        {missingPage.value === path && <Empty icon="clock" title={t('offline.page')} />}
        {children}
      </main>
      <Finder />
    </div>
  );
}

const palette = signal<typeof import('./palette.js') | null>(null);

const loadPalette = async () =>
  (await Promise.all([import('./palette.js'), loadTexts('palette'), loadTexts('data')]))[0];

/** Ctrl-K, from everywhere but a dialog. */
function Finder() {
  const isOpen = useSignal(false);
  const part = usePart(palette, loadPalette, isOpen.value);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isWanted = event.key === 'k' && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;
      if (!isWanted || document.querySelector('dialog[open]') !== null) return;
      event.preventDefault();
      isOpen.value = true;
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  const close = (): void => {
    isOpen.value = false;
  };
  return isOpen.value && part ? <part.Palette pages={pagesOfUser()} onClose={close} /> : null;
}

/** How many alarms wait for somebody. */
function Waiting() {
  const count = waitingCount.value;
  if (count === 0) return null;
  return (
    <span class="badge">
      {formatNumber(count)}
      <span class="visually-hidden"> {t('nav.waiting')}</span>
    </span>
  );
}

/** What a page without a connection is: what was seen until then. */
function Lost() {
  const isBusy = useSignal(false);
  const untilMs = currentUntilMs.value;
  if (untilMs === null) return null;
  const retry = async (): Promise<void> => {
    isBusy.value = true;
    await tryAgain();
    isBusy.value = false;
  };
  return (
    <div class="lost-note" role="alert">
      <p>
        {t(isOffline.value ? 'offline.server' : 'offline.events')} <SeenUntil ms={untilMs} />
      </p>
      <button type="button" class="button small" aria-busy={isBusy.value} onClick={() => void retry()}>
        {t('action.retry')}
      </button>
    </div>
  );
}

function Status() {
  const status = isOffline.value ? 'lost' : liveStatus.value;
  return (
    <span class={`status ${status}`} role="status">
      <span class="dot" />
      <span class="status-text">{t(`status.${status}`)}</span>
    </span>
  );
}
