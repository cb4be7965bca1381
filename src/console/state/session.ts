/** Who uses the console, and what they may do. The rules are the server's own. */
import { computed, signal } from '@preact/signals';
import { mayCall, toSegments } from '../../model/access.js';
import { call, type Entity, noSession, onSessionEnd, VigilError } from './api.js';

export interface User extends Entity {
  readonly login: string;
  readonly name?: string;
  readonly email?: string;
  readonly group: string;
  readonly credentials: readonly string[];
  readonly scopes: readonly string[] | null;
}

/** undefined until it is known. */
export const user = signal<User | null | undefined>(undefined);
/** True while a dialog asks for the password of a session that has ended. */
export const isAskingLogin = signal(false);

// The cookie cannot be read by scripts. Without this mark nobody was logged in, and the server need not be asked.
const MARK = 'vigil.session';
let waiting: { resolve: () => void; reject: (error: unknown) => void }[] = [];

onSessionEnd(
  () =>
    new Promise((resolve, reject) => {
      waiting.push({ resolve, reject });
      isAskingLogin.value = true;
    }),
);

export const mayHaveSession = (): boolean => localStorage.getItem(MARK) !== null;

export async function restoreSession(): Promise<void> {
  if (!mayHaveSession()) {
    user.value = null;
    return;
  }
  try {
    user.value = await call<User>('GET', '/auth', undefined, { mayAskLogin: false });
  } catch (error) {
    if (!(error instanceof VigilError) || error.status !== 401) throw error;
    forget();
  }
}

export async function logIn(login: string, password: string): Promise<void> {
  await call('POST', '/auth', { login, password }, { mayAskLogin: false });
  localStorage.setItem(MARK, '1');
  const found = await call<User>('GET', '/auth', undefined, { mayAskLogin: false });
  const before = user.value;
  // Another person must not go on with what the first one sees.
  if (before && before._id !== found._id) {
    location.assign('/');
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
  await call('DELETE', '/auth', undefined, { mayAskLogin: false }).catch(() => undefined);
  localStorage.removeItem(MARK);
  location.assign('/');
}

export async function reloadUser(): Promise<void> {
  user.value = await call<User>('GET', '/auth');
}

function forget(): void {
  localStorage.removeItem(MARK);
  user.value = null;
}

/** Whether the user may send this request; the path is written without /api/v1. */
export function may(method: string, path: string): boolean {
  const caller = user.value;
  return caller != null && mayCall(caller, method, toSegments(path));
}

/** Pages that need more than their own data. */
export const pages = computed(() => ({
  objects: may('GET', '/objects'),
  models: may('GET', '/models'),
  geofences: may('GET', '/geofences'),
  users: may('GET', '/users'),
  groups: may('GET', '/groups'),
  roles: may('GET', '/roles'),
  tokens: may('GET', '/tokens'),
  audit: may('*', '/audit'),
  stores: may('GET', '/stores'),
}));
