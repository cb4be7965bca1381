/** Who uses the console, and what they may do. The rules are the server's own. */

import { computed, signal } from '@preact/signals';
import { mayCall, toSegments } from '../../core/access.js';
import { ROOT_GROUP_ID } from '../../core/builtin.js';
import { type Caller, type Entity, noSession, onSessionEnd, request, requestWithoutLogin, VigilError } from './api.js';
import { toAddress } from './location.js';

/** undefined until it is known. */
export const user = signal<Caller | null | undefined>(undefined);
/** True while a dialog asks for the password of a session that has ended. */
export const isAskingLogin = signal(false);

const WHO_AM_I = 'GET /api/v1/auth';

// The cookie cannot be read by scripts. Without this mark nobody was logged in, and the server need not be asked.
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

export async function restoreSession(): Promise<void> {
  if (!mayHaveSession()) {
    user.value = null;
    return;
  }
  try {
    user.value = await requestWithoutLogin(WHO_AM_I, {});
  } catch (error) {
    if (!(error instanceof VigilError) || error.status !== 401) throw error;
    forget();
  }
}

export async function logIn(login: string, password: string): Promise<void> {
  await requestWithoutLogin('POST /api/v1/auth', { body: { login, password } });
  localStorage.setItem(SESSION_KEY, '1');
  const found = await requestWithoutLogin(WHO_AM_I, {});
  const before = user.value;
  // Another person must not go on with what the first one sees.
  if (before && before._id !== found._id) {
    location.assign(toAddress('/'));
    return;
  }
  user.value = found;
  isAskingLogin.value = false;
  const resumed = waiting;
  waiting = [];
  for (const { resolve } of resumed) resolve();
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
  location.assign(toAddress('/'));
}

export async function reloadUser(): Promise<void> {
  user.value = await request(WHO_AM_I, {});
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
