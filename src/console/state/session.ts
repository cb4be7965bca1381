/** Who uses the console, and what they may do. The rules are the server's own. */

import { computed, effect, signal } from '@preact/signals';
import { pause } from '../../client/waiting.js';
import { mayCall, toSegments } from '../../core/access.js';
import { ROOT_GROUP_ID } from '../../core/builtin.js';
import { type Caller, type Entity, noSession, onSessionEnd, request, requestWithoutLogin, VigilError } from './api.js';
import { toAddress } from './location.js';

/** undefined until it is known. */
export const user = signal<Caller | null | undefined>(undefined);
/** True while a dialog asks for the password of a session that has ended. */
export const isAskingLogin = signal(false);

const RETRY_MS = 2_000;
const WHO_AM_I = 'GET /api/v1/auth';

// The cookie cannot be read by scripts, so this says to all tabs whose session it is: without it nobody is logged in, and the server
// need not be asked.
const SESSION_KEY = 'vigil.session';
let waiting: { resolve: () => void; reject: (error: unknown) => void }[] = [];

onSessionEnd(
  () =>
    new Promise((resolve, reject) => {
      waiting.push({ resolve, reject });
      isAskingLogin.value = true;
    }),
);

export const mayHaveSession = (): boolean => localStorage.getItem(SESSION_KEY) !== null;

/** Whether nobody has logged out, or in as another user, in any tab. */
export const hasSession = (id: string): boolean => localStorage.getItem(SESSION_KEY) === id;

/** Asks who the user is, until the server answers. */
export async function restoreSession(): Promise<void> {
  // Not of a screen, whose token may end beside a session.
  effect(() => void (isAskingLogin.value && localStorage.removeItem(SESSION_KEY)));
  addEventListener('storage', ({ key, newValue }) => {
    if (key === SESSION_KEY && newValue !== null) void enter().catch(() => undefined);
  });
  if (!mayHaveSession()) {
    user.value = null;
    return;
  }
  while (user.value === undefined) {
    try {
      await enter();
    } catch (error) {
      if (!(error instanceof VigilError)) throw error;
      if (error.status === 401) forget();
      else await pause(RETRY_MS, new AbortController().signal);
    }
  }
}

export async function logIn(login: string, password: string): Promise<void> {
  await requestWithoutLogin('POST /api/v1/auth', { body: { login, password } });
  await enter();
}

/** Goes on with the session that the browser has, whichever tab it was opened in. */
async function enter(): Promise<void> {
  if (!setUser(await requestWithoutLogin(WHO_AM_I, {}))) return;
  isAskingLogin.value = false;
  const resumed = waiting;
  waiting = [];
  for (const { resolve } of resumed) resolve();
}

/** Returns false for another person, who must not go on with what the first one sees. */
function setUser(found: Caller): boolean {
  localStorage.setItem(SESSION_KEY, found._id);
  const isOther = user.value != null && user.value._id !== found._id;
  if (isOther) location.assign(toAddress('/'));
  else user.value = found;
  return !isOther;
}

/** Gives up what was asked for with the session that has ended. */
export function leaveSession(): void {
  const dropped = waiting;
  waiting = [];
  isAskingLogin.value = false;
  forget();
  for (const { reject } of dropped) reject(noSession());
  // Who logs in next may be another person, who must not see what this one did.
  location.reload();
}

export async function logOut(): Promise<void> {
  await requestWithoutLogin('DELETE /api/v1/auth', {}).catch(() => undefined);
  localStorage.removeItem(SESSION_KEY);
  // Who uses this browser next is not told what this user was told.
  const worker = await navigator.serviceWorker?.getRegistration();
  // Below a path of another site, it may be the worker of that site.
  if (worker?.scope.endsWith(toAddress('/'))) await worker.unregister();
  location.assign(toAddress('/'));
}

export async function reloadUser(): Promise<void> {
  setUser(await request(WHO_AM_I, {}));
}

function forget(): void {
  localStorage.removeItem(SESSION_KEY);
  user.value = null;
}

/** Whether the user may send this request; the path is written without /api/v1. */
export function may(method: string, path: string): boolean {
  const caller = user.value;
  return caller != null && mayCall(caller, method, toSegments(path));
}

/**
 * Whether the user sees the entity itself, so that the role decides whether it may be changed. Models, geofences and labels may also be
 * read because of an object, and built-in entities by everyone: they are changed only by others, or by nobody.
 */
export function isOwn(entity: Entity): boolean {
  const { branch = [], access = [] } = entity as { branch?: readonly string[]; access?: readonly string[] };
  const { _id = '', group = '' } = user.value ?? {};
  return !isBuiltIn(entity) && (branch.includes(group) || entity.owner === _id || access.includes(_id));
}

/** Built-in entities are changed by nobody. */
const isBuiltIn = ({ _id }: Entity): boolean => _id.startsWith('0000000000000000');

/** Pages that need more than their own data. */
export const pages = computed(() => ({
  objects: may('GET', '/objects'),
  alarms: may('GET', '/alarms'),
  models: may('GET', '/models'),
  geofences: may('GET', '/geofences'),
  users: may('GET', '/users'),
  groups: may('GET', '/groups'),
  roles: may('GET', '/roles'),
  tokens: may('GET', '/tokens'),
  audit: may('*', '/audit'),
  stores: may('GET', '/stores'),
  settings: may('*', '/settings') && user.value?.group === ROOT_GROUP_ID,
}));
