/** Requests to the server that the page came from, through the client, with the cookie of the session or the token of a wall. */
import { signal } from '@preact/signals';
import { VigilError } from '../../client/client-error.js';
import { createEventStream, type EventOptions, type EventStream } from '../../client/events.js';
import { type PageSize, readPages } from '../../client/listing.js';
import type { Query } from '../../client/query.js';
import { createSend, type HttpAnswer, type HttpRequest, type RequestSettings } from '../../client/requests.js';
import { createRouteRequest } from '../../client/routes.js';
import type { TokenSource } from '../../client/token-source.js';
import { learnFromAnswer } from './clock.js';
import { BASE } from './location.js';
import { createTransport } from './transport.js';

export type { Caller, ControlObjectFields, Routes } from '../../client/client.js';
export { toQueryString } from '../../client/query.js';
export { VigilError };
export type Json = Record<string, unknown>;

export interface Entity extends Json {
  readonly _id: string;
}

/** True while the last request found no server. */
export const isOffline = signal(false);

let actingToken: string | null = null;

/** From now on requests have this token, which counts before a cookie. */
export function actAs(token: string): void {
  actingToken = token;
}

const tokens: TokenSource = { current: async () => actingToken, renew: async () => false };

// The parts of the client that every page needs: the whole client would be a third larger.
const settings: RequestSettings = {
  url: BASE,
  credentials: 'same-origin',
  attempts: 3,
  timeoutMs: 30_000,
  retryMs: 400,
  tokens,
  fetch: async (...args) => {
    const sentMs = Date.now();
    const answer = await fetch(...args);
    learnFromAnswer(answer.headers.get('date'), sentMs);
    return answer;
  },
  onRetry: ({ status }) => {
    isOffline.value = status === 0;
  },
};
const sendOnce = createSend(settings);

type AskLogin = () => Promise<void>;
let askLogin: AskLogin | undefined;

export const noSession = (): VigilError => new VigilError({ status: 401, message: 'Unauthorized' });

/** Sets what asks for a login when the session has ended. */
export function onSessionEnd(ask: AskLogin): void {
  askLogin = ask;
}

/** When the session has ended, the request waits for a login, then it is sent again, unless it must not ask for one. */
async function send(request: HttpRequest, mayAskLogin = true): Promise<HttpAnswer> {
  try {
    const answer = await sendOnce(request);
    isOffline.value = false;
    return answer;
  } catch (error) {
    if (!(error instanceof VigilError)) throw error;
    isOffline.value = error.status === 0;
    if (error.status !== 401 || !mayAskLogin || askLogin === undefined) throw error;
    await askLogin();
    return send(request, false);
  }
}

export const request = createRouteRequest(send);

/** For requests that find out whether there is a session, and for work in the background: fails with 401 without one. */
export const requestWithoutLogin = createRouteRequest((request) => send(request, false));

/** Live events, reconnected at their last position, over one connection for all tabs of the user, if one is given. */
export const createEvents = (user: string | null, options: EventOptions): EventStream =>
  createEventStream({ open: createTransport(sendOnce, tokens, user) }, options);

/** The pages of a list; the path is written without /api/v1, as permissions are. `limit` bounds the whole list. */
export const listPages = <T>(path: string, query: ListQuery, pageSize?: PageSize): AsyncGenerator<T[]> =>
  readPages<T>(send, { path: `/api/v1${path}`, query, pageSize });

type ListQuery = Query & { readonly limit?: number };

export async function list<T = Entity>(path: string, query: ListQuery = {}): Promise<T[]> {
  const all: T[] = [];
  for await (const page of listPages<T>(path, query)) all.push(...page);
  return all;
}
