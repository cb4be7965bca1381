/** Requests to the server that the page came from, through the client, with the cookie of the session. */
import { signal } from '@preact/signals';
import { VigilError } from '../../client/client-error.js';
import { createEventStream, type EventOptions, type EventStream } from '../../client/events.js';
import { toList } from '../../client/query.js';
import { createOpen, createSend, type RequestSettings } from '../../client/requests.js';
import { createServerSentEvents } from '../../client/server-sent-events.js';

export { VigilError };
export type Json = Record<string, unknown>;

/** True while the last request found no server. */
export const isOffline = signal(false);

// The parts of the client that the console needs: all of it has the stores and WebSockets, too.
const settings: RequestSettings = {
  ...{ url: '', credentials: 'same-origin', attempts: 3, timeoutMs: 30_000, retryMs: 400 },
  tokens: { current: async () => null, renew: async () => false },
  fetch: (...args) => fetch(...args),
  onRetry: ({ status }) => {
    isOffline.value = status === 0;
  },
};
const send = createSend(settings);
const openEvents = createServerSentEvents(createOpen(settings));

/** Live events, reconnected at their last position. */
export const createEvents = (options: EventOptions): EventStream => createEventStream({ open: openEvents }, options);

type AskLogin = () => Promise<void>;
let askLogin: AskLogin = () => Promise.reject(noSession());

export const noSession = (): VigilError => new VigilError({ status: 401, message: 'Unauthorized' });

/** What to do when the session has ended: the request waits for it, then it is sent again. */
export function onSessionEnd(ask: AskLogin): void {
  askLogin = ask;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  /** False for the requests that find out whether there is a session. */
  readonly mayAskLogin?: boolean;
}

/** The path is written without /api/v1, as permissions are. */
export async function call<T = Json>(
  method: string,
  path: string,
  body?: unknown,
  options: CallOptions = {},
): Promise<T> {
  try {
    const request = { method, path: `/api/v1${path}`, body, isRepeatable: method === 'GET', signal: options.signal };
    const answer = await send(request);
    isOffline.value = false;
    return answer.body as T;
  } catch (error) {
    if (!(error instanceof VigilError)) throw error;
    isOffline.value = error.status === 0;
    if (error.status !== 401 || options.mayAskLogin === false) throw error;
    await askLogin();
    return call(method, path, body, { ...options, mayAskLogin: false });
  }
}

/** `?a=1&b=2` of the parameters that have a value. */
export function toQuery(parameters: Record<string, string | number | readonly string[] | null | undefined>): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== '');
  return given.length === 0
    ? ''
    : `?${new URLSearchParams(given.map(([name, value]) => [name, Array.isArray(value) ? toList(value) : String(value)])).toString()}`;
}

export interface Entity extends Json {
  readonly _id: string;
}

const PAGE = 1_000;
const NEXT_PAGE = 300;

type Parameters = Record<string, string | number | undefined>;

/** One page of a list. */
export const listPage = <T extends Entity>(path: string, parameters: Parameters): Promise<T[]> =>
  call<T[]>('GET', `${path}${toQuery(parameters)}`);

/** Every entity of a list, page by page. While few are there, pages are small: a page that is being opened has no time for large ones. */
export async function* listAll<T extends Entity>(
  path: string,
  parameters: Parameters = {},
  firstPage = PAGE,
): AsyncGenerator<T[]> {
  let [after, limit, loaded]: [string | undefined, number, number] = [undefined, firstPage, 0];
  for (;;) {
    const page: T[] = await listPage<T>(path, { ...parameters, limit, after });
    yield page;
    if (page.length < limit) return;
    after = page.at(-1)?._id;
    loaded += limit;
    limit = Math.min(PAGE, Math.max(limit, NEXT_PAGE, Math.ceil(loaded / 10)));
  }
}

export async function list<T extends Entity>(path: string, parameters: Parameters = {}): Promise<T[]> {
  const all: T[] = [];
  for await (const page of listAll<T>(path, parameters)) all.push(...page);
  return all;
}
