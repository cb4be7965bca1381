/** Sends requests: with credentials, within a time, again where that is safe; every failure is a `VigilError`. */
import { toNetworkError, toVigilError, VigilError } from './client-error.js';
import type { TokenSource } from './token-source.js';
import { linkController, pause, toBackoffMs } from './waiting.js';

export interface RequestSettings {
  /** Without a slash at the end; empty for the page's own server. */
  readonly url: string;
  readonly tokens: TokenSource;
  readonly fetch: typeof fetch;
  readonly credentials: 'omit' | 'same-origin' | 'include';
  readonly attempts: number;
  readonly timeoutMs: number;
  readonly retryMs: number;
  readonly onRetry: (error: VigilError, waitMs: number) => void;
}

export interface HttpRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Whether the service may receive it twice. */
  readonly isRepeatable: boolean;
  /** The time for the whole answer; 0 for no limit. */
  readonly timeoutMs?: number | undefined;
}

export interface HttpAnswer {
  readonly body: unknown;
  readonly headers: Headers;
}

/** Sends a request, and reads its answer. */
export type Send = (request: HttpRequest) => Promise<HttpAnswer>;

/** Sends a request once, and leaves the body of its answer to the caller. */
export type Open = (request: HttpRequest) => Promise<Response>;

/** A person does not wait for longer. */
const LONGEST_WAIT_MS = 60_000;
const REPEATABLE = new Set([0, 502, 503, 504]);

/** Sends a request until it is answered, or trying again is of no use. */
export function createSend(settings: RequestSettings): Send {
  const open = createOpen(settings);
  return async (request) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await sendOnce(settings, open, request);
      } catch (error) {
        const waitMs = error instanceof VigilError ? toWaitMs(settings, request, { error, attempt }) : null;
        if (waitMs === null) throw error;
        settings.onRetry(error as VigilError, waitMs);
        await pause(waitMs, request.signal ?? new AbortController().signal);
        request.signal?.throwIfAborted();
      }
    }
  };
}

/** Null when another attempt is of no use, or could do a thing twice. */
function toWaitMs(
  { attempts, retryMs }: RequestSettings,
  { isRepeatable }: HttpRequest,
  { error, attempt }: { error: VigilError; attempt: number },
): number | null {
  const { status, retryAfterMs } = error;
  const isPassing = REPEATABLE.has(status) || (status === 429 && retryAfterMs !== null);
  if (!isRepeatable || !isPassing || attempt >= attempts || (retryAfterMs ?? 0) > LONGEST_WAIT_MS) return null;
  return Math.max(retryAfterMs ?? 0, toBackoffMs(attempt, retryMs));
}

async function sendOnce(settings: RequestSettings, open: Open, request: HttpRequest): Promise<HttpAnswer> {
  const { controller, release } = linkController(request.signal);
  const timeoutMs = request.timeoutMs ?? settings.timeoutMs;
  const timeout = new Error(`no answer within ${timeoutMs / 1_000} s`);
  const timer = timeoutMs > 0 ? setTimeout(() => controller.abort(timeout), timeoutMs) : undefined;
  try {
    const response = await open({ ...request, signal: controller.signal });
    const isJson = response.headers.get('content-type')?.includes('json') ?? false;
    return { body: isJson ? await response.json() : await response.text(), headers: response.headers };
  } catch (error) {
    request.signal?.throwIfAborted();
    if (error instanceof VigilError) throw error;
    throw toNetworkError(controller.signal.aborted ? timeout : error, settings.url);
  } finally {
    clearTimeout(timer);
    release();
  }
}

/** After a 401 a renewed token is tried once. */
export function createOpen(settings: RequestSettings): Open {
  return async (request) => {
    const token = await settings.tokens.current();
    const response = await openOnce(settings, request, token);
    if (response.status !== 401 || token === null) return ensureSuccess(response);
    const error = await toVigilError(response);
    if (!(await settings.tokens.renew(token))) throw error;
    return ensureSuccess(await openOnce(settings, request, await settings.tokens.current()));
  };
}

async function ensureSuccess(response: Response): Promise<Response> {
  if (response.ok) return response;
  throw await toVigilError(response);
}

/** One request of nobody or with a token. */
async function openOnce(
  settings: Pick<RequestSettings, 'url' | 'fetch' | 'credentials'>,
  { method, path, body, headers, signal }: HttpRequest,
  token: string | null,
): Promise<Response> {
  try {
    return await settings.fetch(settings.url + path, {
      method,
      headers: {
        Accept: 'application/json',
        ...(token !== null && { Authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      credentials: settings.credentials,
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal !== undefined && { signal }),
    });
  } catch (error) {
    signal?.throwIfAborted();
    throw toNetworkError(error, settings.url);
  }
}
