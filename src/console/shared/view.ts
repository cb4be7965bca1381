/** What a share link shows: opened with its secret, without a session, and followed live. */
import { signal } from '@preact/signals';
import { VigilError } from '../../client/client-error.js';
import { createOpen, createSend, type RequestSettings } from '../../client/requests.js';
import { createRouteRequest } from '../../client/routes.js';
import { createServerSentEvents } from '../../client/server-sent-events.js';
import { pause, toBackoffMs } from '../../client/waiting.js';
import { loadMeanings } from '../home/tone.js';
import { addPacket, type LastValues } from '../objects/last-values.js';
import type { Json, Routes } from '../state/api.js';
import { learnFromAnswer, serverNowMs } from '../state/clock.js';
import type { Packet } from '../state/fleet.js';
import { BASE } from '../state/location.js';

export interface SharedParameter {
  readonly id: string;
  readonly name: string | null;
  readonly unit: string | null;
  readonly states?: unknown;
  readonly thresholds?: unknown;
}

type Answer = Routes['GET /api/v1/shared']['answer'];
export type PastSeries = Routes['GET /api/v1/shared/series']['answer'];

export interface SharedView {
  readonly name: string;
  readonly expiresAtMs: number;
  readonly history: Answer['history'];
  /** The fields of the object that the link shows. */
  readonly object: Json;
  readonly parameters: readonly SharedParameter[];
  readonly values: LastValues;
}

export const phase = signal<'opening' | 'pin' | 'shown' | 'ended'>('opening');
export const view = signal<SharedView | null>(null);
/** How often it was connected. */
export const connections = signal(0);
/** Since when the server has not been reached; null while it answers. */
export const lostSinceMs = signal<number | null>(null);

/** In the storage of the tab, so that a page which is loaded again asks for no PIN and counts as the same view. */
const STORED = 'vigil.view';
/** The beginning of a secret, which only says which link it is. */
const LINK_CHARACTERS = 16;
const RETRY_MS = 1_000;

let token: string | null = null;
/** When the server was last heard. */
let heardMs = serverNowMs();
let opened: { resolve: () => void; reject: (error: unknown) => void } | undefined;

const settings: RequestSettings = {
  url: BASE,
  // Who is logged in in this browser sees what every visitor sees.
  credentials: 'omit',
  attempts: 1,
  timeoutMs: 30_000,
  retryMs: RETRY_MS,
  tokens: { current: async () => token, renew: async () => false },
  fetch: async (...args) => {
    const sentMs = Date.now();
    const answer = await fetch(...args);
    learnFromAnswer(answer.headers.get('date'), sentMs);
    hear();
    return answer;
  },
  onRetry: () => undefined,
};
const request = createRouteRequest(createSend(settings));
const open = createOpen(settings);
const openEvents = createServerSentEvents(async (events) => {
  const { body, ...answer } = await open({ ...events, path: '/api/v1/shared/events' });
  // Now that events are on their way, nothing is missed between what is read and the first one.
  await readView();
  return { ...answer, body: body?.pipeThrough(createListener()) ?? null } as Response;
});

function hear(): void {
  heardMs = serverNowMs();
}

/** Passes a stream on. The server sends something now and then, also without events. */
const createListener = (): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> =>
  new TransformStream({
    transform(piece, stream) {
      hear();
      stream.enqueue(piece);
    },
  });

/** Shows what the link shows until it ends. */
export async function followLink(secret: string): Promise<void> {
  token = readToken(secret);
  let connection = new AbortController();
  // A connection that was lost so may stay silent for a minute before that is noticed.
  addEventListener('offline', () => connection.abort(new VigilError({ status: 0, message: 'The browser is offline' })));
  for (let attempt = 1; phase.value !== 'ended'; attempt++) {
    let waitMs = 0;
    connection = new AbortController();
    try {
      if (token === null) await openLink(secret);
      for await (const signal of openEvents({ since: null, signal: connection.signal })) {
        if (signal.kind === 'event') receive(signal.event as unknown as SharedEvent);
      }
      attempt = 1;
    } catch (error) {
      if (lostSinceMs.value === null) attempt = 1;
      waitMs = fail(error);
    }
    await pause(Math.max(waitMs, toBackoffMs(attempt, RETRY_MS)), new AbortController().signal);
  }
}

/** How long the service asks to wait. */
function fail(error: unknown): number {
  if (!(error instanceof VigilError)) throw error;
  if (error.status === 404) end();
  // The token has expired, or the link has ended: opening it again tells which.
  else if (error.status === 401) token = null;
  else lostSinceMs.value ??= heardMs;
  return error.retryAfterMs ?? 0;
}

function end(): void {
  sessionStorage.removeItem(STORED);
  view.value = null;
  phase.value = 'ended';
}

/** Waits for the PIN if the link has one. Throws a 404 if the link has ended. */
async function openLink(secret: string): Promise<void> {
  try {
    await openWith(secret);
  } catch (error) {
    if (!(error instanceof VigilError) || error.status !== 401) throw error;
    lostSinceMs.value = null;
    phase.value = 'pin';
    await new Promise<void>((resolve, reject) => {
      opened = { resolve, reject };
    });
  }
}

async function openWith(secret: string, pin?: string): Promise<void> {
  const body = { secret, ...(pin !== undefined && { pin }) };
  const answer = await request('POST /api/v1/shared', { body });
  token = answer.token;
  sessionStorage.setItem(STORED, `${secret.slice(0, LINK_CHARACTERS)} ${token}`);
}

/** Opens the link with a PIN. Throws a 401 if the PIN is wrong. */
export async function enterPin(secret: string, pin: string): Promise<void> {
  try {
    await openWith(secret, pin);
    opened?.resolve();
  } catch (error) {
    if (!(error instanceof VigilError) || error.status !== 404) throw error;
    opened?.reject(error);
  }
}

function readToken(secret: string): string | null {
  const [link, stored = null] = (sessionStorage.getItem(STORED) ?? '').split(' ');
  return link === secret.slice(0, LINK_CHARACTERS) ? stored : null;
}

async function readView(): Promise<void> {
  const { name, expiresAt, history, object, parameters, latest } = await request('GET /api/v1/shared', {});
  await loadMeanings(parameters);
  const values: LastValues = new Map();
  // The server has them in no order, and they stay where they are.
  for (const [id, { value, time }] of Object.entries(latest).sort(([one], [other]) => (one < other ? -1 : 1)))
    values.set(id, { value, timeMs: time });
  view.value = { name, expiresAtMs: expiresAt, history, object, parameters, values };
  connections.value++;
  lostSinceMs.value = null;
  phase.value = 'shown';
}

/** The last 24 hours of numbers that the link shows. */
export const readPast = (params: readonly string[], points: number): Promise<PastSeries> =>
  request('GET /api/v1/shared/series', { query: { params, points } });

type SharedEvent =
  | { readonly event: 'object-packet'; readonly data: Packet }
  | { readonly event: 'object-update'; readonly data: { readonly before: Json; readonly after: Json } };

function receive({ event, data }: SharedEvent): void {
  const shown = view.value;
  if (shown === null) return;
  if (event === 'object-update') {
    // Of the fields that changed, and were there before or are now.
    const same = Object.entries(shown.object).filter(([name]) => !(name in data.before));
    view.value = { ...shown, object: { ...Object.fromEntries(same), ...data.after } };
  } else {
    const values = new Map(shown.values);
    addPacket(values, data);
    view.value = { ...shown, values };
  }
}
