/** One request to a receiver: to an address that is allowed, with an end, and with what it answered. */

import { Agent as HttpAgent, type IncomingMessage, type RequestOptions, request as sendHttp } from 'node:http';
import { Agent as HttpsAgent, request as sendHttps } from 'node:https';
import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';
import type { Network } from './address-policy.js';
import { checkLiteral, createLookup } from './addresses.js';
import type { Resolve } from './names.js';

/** How much of an address that a receiver redirects to is shown. */
const REDIRECT_CHARACTERS = 200;

/** What became of a request. */
export interface RequestOutcome {
  /** The status of the answer; null where there was none, or not all of it. */
  readonly status: number | null;
  /** What went wrong, for a person; null where the answer says it. */
  readonly error: string | null;
  /** The beginning of the answer. */
  readonly answer: string;
  readonly ms: number;
  readonly retryAfterMs: number | null;
}

export interface OutgoingRequest {
  /** `POST` by default. */
  readonly method?: 'GET' | 'POST';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Empty with `GET`. */
  readonly body: Buffer;
  /** Ends it at once. */
  readonly signal: AbortSignal;
}

export interface Sender {
  send(request: OutgoingRequest): Promise<RequestOutcome>;
  /** Ends connections that nobody uses. */
  close(): void;
}

/** How long an answer is waited for, how much of it is read, and how much of that is returned. */
export interface AnswerBounds {
  readonly answerMs: number;
  readonly answerBytes: number;
  readonly shownBytes: number;
}

const webhookBounds = (): AnswerBounds => ({
  answerMs: LIMITS.webhookAnswerMs,
  answerBytes: LIMITS.webhookAnswerBytes,
  shownBytes: LIMITS.webhookAnswerShownBytes,
});

/** Has its own connections: receivers share nothing. */
export function createSender(
  allowed: readonly Network[],
  resolve: Resolve,
  boundsNow: () => AnswerBounds = webhookBounds,
): Sender {
  const lookup = createLookup(allowed, resolve);
  const options = {
    keepAlive: true,
    scheduling: 'lifo' as const,
    timeout: LIMITS.webhookIdleMs,
    maxFreeSockets: LIMITS.webhookRequestsPerPartition * LIMITS.partitions,
  };
  const agents = { 'http:': new HttpAgent(options), 'https:': new HttpsAgent(options) };
  return {
    async send({ method = 'POST', url, headers, body, signal }) {
      const bounds = boundsNow();
      const startMs = clock.steadyMs();
      const end = (part: Partial<RequestOutcome>): RequestOutcome => ({
        status: null,
        error: null,
        answer: '',
        retryAfterMs: null,
        ms: Math.round(clock.steadyMs() - startMs),
        ...part,
      });
      const ending = new AbortController();
      const abort = (): void => ending.abort();
      let isLate = false;
      const timer = clock.setTimeout(() => {
        isLate = true;
        abort();
      }, bounds.answerMs);
      signal.addEventListener('abort', abort, { once: true });
      try {
        signal.throwIfAborted();
        checkLiteral(url.hostname, allowed);
        const isTls = url.protocol === 'https:';
        const sent: RequestOptions = {
          method,
          lookup,
          signal: ending.signal,
          agent: isTls ? agents['https:'] : agents['http:'],
          headers: method === 'GET' ? headers : { ...headers, 'content-length': String(body.length) },
        };
        return end(await exchange(isTls ? sendHttps : sendHttp, url, sent, body, bounds));
      } catch (error) {
        return end({ error: isLate ? `no answer within ${bounds.answerMs / 1_000} s` : reasonOf(error) });
      } finally {
        clock.clearTimer(timer);
        signal.removeEventListener('abort', abort);
      }
    },
    close() {
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}

type Answer = Pick<RequestOutcome, 'status' | 'error' | 'answer' | 'retryAfterMs'>;

/** Sends with Node.js, and settles whatever becomes of the request: one that never ended would block its object for good. */
export function exchange(
  send: typeof sendHttps,
  url: URL,
  options: RequestOptions,
  body: Buffer,
  bounds: AnswerBounds = webhookBounds(),
): Promise<Answer> {
  return new Promise((fulfil, reject) => {
    let isAnswered = false;
    const request = send(url, options, (response) => {
      isAnswered = true;
      readAnswer(response, bounds).then((answer) => {
        const status = response.statusCode ?? null;
        fulfil({ ...answer, status, error: redirectOf(response, url), retryAfterMs: retryAfterOf(response) });
      }, reject);
    });
    request.on('error', reject);
    // Nobody asked for another protocol. Without this, neither an answer nor an error would come.
    request.on('upgrade', (response, socket) => {
      socket.destroy();
      fulfil({
        status: response.statusCode ?? null,
        error: 'the receiver wants another protocol',
        answer: '',
        retryAfterMs: null,
      });
    });
    // No receiver is known for which Node.js reports nothing else.
    request.on('close', () => {
      if (!isAnswered) reject(new Error('the connection ended before an answer'));
    });
    request.end(body);
  });
}

async function readAnswer(
  response: IncomingMessage,
  { answerBytes, shownBytes }: AnswerBounds,
): Promise<{ answer: string }> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    if (bytes < shownBytes) pieces.push(piece);
    bytes += piece.length;
    // Leaving the loop ends the connection.
    if (bytes > answerBytes) break;
  }
  const shown = Buffer.concat(pieces).subarray(0, shownBytes);
  return { answer: shown.toString('utf8').replaceAll('\u0000', '\ufffd') };
}

function retryAfterOf({ headers }: IncomingMessage): number | null {
  const text = headers['retry-after'];
  if (text === undefined) return null;
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - clock.now();
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), LIMITS.webhookRetryAfterMaxMs) : null;
}

/** Those that name no address redirect as well. */
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Says where a receiver redirects to, without what may be secret in that address; null for all other answers. */
function redirectOf({ statusCode = 0, headers: { location } }: IncomingMessage, url: URL): string | null {
  if (statusCode < 300 || statusCode > 399 || (location === undefined && !REDIRECTS.has(statusCode))) return null;
  const target = location !== undefined && URL.canParse(location, url.href) ? new URL(location, url) : null;
  const isWeb = target?.protocol === 'http:' || target?.protocol === 'https:';
  const named = target !== null && isWeb ? `${target.origin}${target.pathname}` : 'another address';
  return `the receiver redirects to ${named.slice(0, REDIRECT_CHARACTERS)}; redirects are not followed: enter the final address as url`;
}

/** An explanation that reveals nothing about the service itself. */
function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  const text = typeof message === 'string' && message !== '' ? message : String(code ?? 'the request failed');
  return text.slice(0, 256);
}
