/** A wall: saved views in turns on a screen that nobody touches, with a token in place of a session. */
import { computed, signal } from '@preact/signals';
import { render } from 'preact';
import { useEffect } from 'preact/hooks';
import { LocationProvider } from 'preact-iso/router';
import { pause } from '../../client/waiting.js';
import { Home } from '../home/home.js';
import type { SavedView } from '../home/saved-views.js';
import { Skeleton } from '../parts/notices.js';
import { Message } from '../shell/message.js';
import { followAlarms, waitingCount } from '../state/alarms.js';
import { actAs, requestWithoutLogin, VigilError } from '../state/api.js';
import { nowMs, startClock } from '../state/clock.js';
import { currentUntilMs, followEvents } from '../state/live.js';
import { toAddress } from '../state/location.js';
import { isAskingLogin, user } from '../state/session.js';
import {
  formatMoment,
  formatNumber,
  formatTime,
  loadTexts,
  prepareNumbers,
  type TextLoader,
  t,
} from '../text/language.js';
import { readWallAddress, type WallAddress } from './wall-address.js';

const WALL_TEXTS: TextLoader = {
  en: () => import('../text/english-wall.js'),
  de: () => import('../text/german-wall.js'),
};

const RETRY_MS = 5_000;

const shown = signal<SavedView | null>(null);
/** The views that the token does not see, or that were removed. */
const missing = signal<ReadonlySet<string>>(new Set());
const isRefused = signal(false);
/** The token has expired, or was revoked: nobody is there to log in. */
const isOver = computed(() => isRefused.value || isAskingLogin.value);

export async function show(element: HTMLElement): Promise<void> {
  const address = readWallAddress();
  addEventListener('hashchange', () => location.reload());
  await Promise.all([loadTexts('home'), loadTexts(WALL_TEXTS)]);
  if (address.token === null) isRefused.value = true;
  else actAs(address.token);
  startClock(() => void askWho().catch(() => undefined));
  render(<Wall views={address.views} />, element);
  if (address.token !== null && (await enter())) void showInTurns(address);
}

const askWho = () => requestWithoutLogin('GET /api/v1/auth', {});

/** A screen may be there before its network is. Returns whether the token is valid. */
async function enter(): Promise<boolean> {
  for (;;) {
    try {
      user.value = await askWho();
      break;
    } catch (error) {
      if (!(error instanceof VigilError)) throw error;
      isRefused.value = error.status === 401;
      if (isRefused.value) return false;
      await rest(RETRY_MS);
    }
  }
  followAlarms();
  void followEvents(null);
  prepareNumbers();
  return true;
}

/** Each view is read when its turn comes: it may have been changed meanwhile, removed, or be there again. */
async function showInTurns({ views, everyMs }: WallAddress): Promise<void> {
  for (let turn = 0; !isOver.value; turn = (turn + 1) % views.length) {
    const id = views[turn] ?? '';
    await readView(id);
    const isSkipped = missing.value.has(id) && missing.value.size < views.length;
    if (!isSkipped) await rest(shown.value === null ? RETRY_MS : everyMs);
  }
}

const rest = (ms: number): Promise<void> => pause(ms, new AbortController().signal);

/** Shows it. What is shown stays if it is not there, or cannot be read now. */
async function readView(id: string): Promise<void> {
  try {
    const view = await requestWithoutLogin('GET /api/v1/views/{id}', { path: { id } });
    shown.value = view as unknown as SavedView;
    missing.value = new Set([...missing.value].filter((one) => one !== id));
  } catch (error) {
    if (!(error instanceof VigilError)) throw error;
    if ([400, 403, 404].includes(error.status)) missing.value = new Set(missing.value).add(id);
  }
}

function Wall({ views }: { views: readonly string[] }) {
  const view = shown.value;
  const name = view?.name ?? '';
  useEffect(() => {
    document.title = name === '' ? 'Vigil' : `${name} · Vigil`;
  }, [name]);
  if (isOver.value) return <Message text={t('wall.ended')} />;
  if (missing.value.size === views.length) return <Message text={t('wall.missing')} />;
  return (
    <div class="wall">
      <header class="wall-head">
        <h1>{name}</h1>
        <Lost />
        {waitingCount.value > 0 && (
          <p>
            <span class="badge">{formatNumber(waitingCount.value)}</span> {t('nav.waiting')}
          </p>
        )}
        <time class="wall-time">{formatTime(nowMs.value)}</time>
      </header>
      <main id="main" class="main">
        {/* Nobody touches it: what leads elsewhere would stay there. */}
        <div class="wall-view" inert>
          {view === null ? <Skeleton rows={6} /> : <View view={view} />}
        </div>
      </main>
    </div>
  );
}

/** The first page with what the view says in place of the address. */
function View({ view }: { view: SavedView }) {
  const address = {
    url: toAddress('/'),
    path: toAddress('/'),
    query: Object.fromEntries(new URLSearchParams(view.query)),
    route: stay,
    back: stay,
    forward: stay,
  };
  return (
    <LocationProvider.ctx.Provider value={address}>
      <Home />
    </LocationProvider.ctx.Provider>
  );
}

const stay = (): void => undefined;

function Lost() {
  const untilMs = currentUntilMs.value;
  if (untilMs === null) return null;
  return (
    <p class="wall-lost" role="alert">
      {t('wall.lost', { moment: formatMoment(untilMs, nowMs.value) })}
    </p>
  );
}
