/** The stream of live events: opens it, keeps it open, loads what it continues, and passes events on. */

import { computed, effect, signal } from '@preact/signals';
import { pause } from '../../client/waiting.js';
import { createEvents, isOffline, type Json, noSession, request, requestWithoutLogin, VigilError } from './api.js';
import { nowMs } from './clock.js';
import {
  addObject,
  applyPacket,
  applyUpdate,
  type FleetObject,
  loadFirstObjects,
  loadFleet,
  loading,
  type Packet,
  removeObject,
} from './fleet.js';
import { toPath } from './location.js';
import { hasSession, isAskingLogin, reloadUser } from './session.js';

export type LiveStatus = 'connecting' | 'live' | 'lost';
export const liveStatus = signal<LiveStatus>('connecting');

/** Whether what is shown may be old: the server cannot be reached, or events do not arrive. */
export const isLost = computed(() => isOffline.value || liveStatus.value === 'lost');
/** Until when what is shown was current; null while it is, and while a login is asked for. */
export const currentUntilMs = signal<number | null>(null);

effect(() => {
  if (!isLost.value || isAskingLogin.value) currentUntilMs.value = null;
  else currentUntilMs.value = currentUntilMs.peek() ?? nowMs.peek();
});

let isWaiting = false;

effect(() => {
  if (isOffline.value && !isWaiting) void waitForServer();
});

/** A request may fail although no connection is lost: then nothing else would find out that the server is back. */
async function waitForServer(): Promise<void> {
  isWaiting = true;
  while (isOffline.peek()) {
    await pause(SERVER_RETRY_MS, new AbortController().signal);
    await findServer();
  }
  isWaiting = false;
}

let isChecking = false;

/** A request that was under way when the browser went offline may still be answered: it is asked again. */
async function checkNetwork(): Promise<void> {
  if (isChecking) return;
  isChecking = true;
  while (!navigator.onLine && !isOffline.peek()) {
    await findServer();
    await pause(SERVER_RETRY_MS, new AbortController().signal);
  }
  isChecking = false;
}

/** Asks for the server at once: every pause between two attempts ends as if the browser were online again. */
export async function tryAgain(): Promise<void> {
  dispatchEvent(new Event('online'));
  await findServer();
}

/** The answer says whether the server can be reached. */
const findServer = (): Promise<unknown> => requestWithoutLogin('GET /api/v1/auth', {}).catch(() => undefined);

export interface LiveEvent {
  readonly name: string;
  readonly data: Json;
}

const RETRY_MS = 2_000;
const SERVER_RETRY_MS = 5_000;

const listeners = new Set<(event: LiveEvent) => void>();

export function onEvent(listener: (event: LiveEvent) => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Counts the beginnings and the gaps of the stream: what was loaded before lacks what came until then. */
export const interruptions = signal(0);

let isLoaded = false;

/**
 * For as long as the page is there, and loads the objects. The client reconnects at its last position; when the session has ended, a
 * login comes first. `user`: whose session it is; null for a page with a token of its own.
 */
export async function followEvents(user: string | null): Promise<void> {
  // A network that is gone closes no connection.
  addEventListener('offline', () => void checkNetwork());
  let position: string | null = null;
  // Other pages need none of them at once.
  if (toPath(location.pathname) === '/') void loadFirstObjects();
  for (;;) {
    const onState = (state: string): void => showState(state, user);
    const stream = createEvents(user, { since: position, onState });
    try {
      for await (const { event, data } of stream) receive(event, data as unknown as Json);
    } catch (error) {
      showLost();
      position = stream.position;
      if (!(await canGoOn(error, user))) return;
    }
  }
}

function showState(state: string, user: string | null): void {
  // The cookie may be another user's, whose events must not arrive here.
  if (state === 'connecting' && user !== null && !hasSession(user)) throw noSession();
  if (state === 'live') {
    liveStatus.value = 'live';
    isOffline.value = false;
    // Not before: what changed between a page and the first event would be missed.
    if (!isLoaded) loadAgain();
    isLoaded = true;
  } else if (state === 'waiting') showLost();
}

function loadAgain(): void {
  interruptions.value++;
  void loadFleet();
}

/** What can be read is shown even so. */
function showLost(): void {
  liveStatus.value = 'lost';
  void findServer();
  if (loading.value === 'idle') void loadFleet();
}

async function canGoOn(error: unknown, user: string | null): Promise<boolean> {
  if (!(error instanceof VigilError)) throw error;
  await new Promise<void>((resolve) => setTimeout(() => resolve(), RETRY_MS));
  try {
    await (user === null ? request('GET /api/v1/auth', {}) : reloadUser());
    return true;
  } catch (failed) {
    // Nobody logged in again: the page goes back to the login.
    return !(failed instanceof VigilError && failed.status === 401);
  }
}

function receive(name: string, data: Json): void {
  apply(name, data);
  for (const listener of listeners) listener({ name, data });
}

function apply(name: string, data: Json): void {
  if (name === 'object-packet') applyPacket(data as unknown as Packet & { _oid: string });
  else if (name === 'object-update') applyUpdate(data as { id: string; after: Json });
  else if (name === 'object-removed') removeObject(String(data.id));
  else if (name === 'object-created') addObject(data.object as FleetObject);
  else if (name === 'gap') loadAgain();
}
