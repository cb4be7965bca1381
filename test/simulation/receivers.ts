/**
 * The receivers of webhooks: what is sent to them goes over a network that takes time, and they fail as receivers do. They stand in the
 * place of one HTTP request (`webhooks/request.ts`); the signed message that comes to them is the real one.
 */
import { LIMITS } from '../../src/core/limits.js';
import type { OutgoingRequest, RequestOutcome, Sender } from '../../src/webhooks/request.js';
import { between, chance } from './random.js';
import type { Incarnation, VirtualTime } from './virtual-time.js';

export const RECEIVER_FAULTS = ['refuses', 'hangs', 'fails', 'busy', 'redirects', 'loses answers', 'late'] as const;
export type ReceiverFault = (typeof RECEIVER_FAULTS)[number];

/** One request, as its receiver saw it. */
export interface Request {
  readonly handler: string;
  /** The `webhook-id`. */
  readonly id: string;
  readonly body: string;
  readonly sender: Incarnation | null;
  /** Up to where the instance had taken changes in when it looked at rights, and how many entries a majority had when it sent. */
  readonly applied: string;
  readonly committed: number;
  readonly sentMs: number;
  hasArrived: boolean;
  /** The receiver has it, whatever the instance learned. */
  isAccepted: boolean;
  /** When the answer came, or nobody waited for it any more; null if it never was so. */
  endedMs: number | null;
}

export interface ReceiverOptions {
  readonly time: VirtualTime;
  readonly committed: () => number;
  readonly note: (name: string, details?: string) => void;
}

interface Trouble {
  readonly fault: ReceiverFault;
  /** Which share of requests suffers it. */
  readonly share: number;
}

const NOT_THERE: Omit<RequestOutcome, 'ms'> = { status: null, error: null, answer: '', retryAfterMs: null };

export class Receivers {
  /** In the order in which they were sent; those that arrive do so in the order of `arrived`. */
  readonly requests: Request[] = [];
  readonly arrived: Request[] = [];
  readonly #options: ReceiverOptions;
  readonly #troubles = new Map<string, Trouble>();
  /** Who sent each message first. */
  readonly #firstSenders = new Map<string, Incarnation | null>();

  constructor(options: ReceiverOptions) {
    this.#options = options;
  }

  trouble(handler: string, trouble: Trouble): void {
    this.#troubles.set(handler, trouble);
  }

  /** All of them work again. */
  heal(): void {
    this.#troubles.clear();
  }

  /** What an instance sends with; `applied` is up to where it had taken changes in. */
  senderFor(applied: () => string): Sender {
    return { send: (request) => this.#send(request, applied()), close: () => undefined };
  }

  #send({ url, headers, body, signal }: OutgoingRequest, applied: string): Promise<RequestOutcome> {
    const { time, committed } = this.#options;
    const request: Request = {
      handler: url.hostname.split('.')[0] as string,
      id: String(headers['webhook-id']),
      body: body.toString(),
      sender: time.current,
      applied,
      committed: committed(),
      sentMs: time.nowMs,
      hasArrived: false,
      isAccepted: false,
      endedMs: null,
    };
    this.requests.push(request);
    return new Promise((resolve) => {
      const end = (outcome: Partial<RequestOutcome>): void => {
        if (request.endedMs !== null) return;
        request.endedMs = time.nowMs;
        cancel();
        signal.removeEventListener('abort', abort);
        resolve({ ...NOT_THERE, ms: Math.round(time.nowMs - request.sentMs), ...outcome });
      };
      const abort = (): void => end({ error: 'This operation was aborted' });
      const late = (): void => end({ error: `no answer within ${LIMITS.webhookAnswerMs / 1_000} s` });
      const cancel = time.after(LIMITS.webhookAnswerMs, request.sender, late);
      signal.addEventListener('abort', abort, { once: true });
      if (signal.aborted) abort();
      else this.#transmit(request, end);
    });
  }

  /** Whoever has died since learns nothing. */
  #transmit(request: Request, end: (outcome: Partial<RequestOutcome>) => void): void {
    const { time, note } = this.#options;
    const ms = between(time.random, 0.2, 10);
    const answer = (outcome: Partial<RequestOutcome>, afterMs = between(time.random, 0.2, 10)): void =>
      void time.after(afterMs, request.sender, () => end(outcome));
    time.after(ms, null, () => {
      const trouble = this.#troubles.get(request.handler);
      const fault = trouble !== undefined && chance(time.random, trouble.share) ? trouble.fault : null;
      if (fault !== null) note(`receiver: ${fault}`, request.handler);
      if (fault === 'refuses') return answer({ error: 'connect ECONNREFUSED' });
      request.hasArrived = true;
      this.arrived.push(request);
      if (!this.#firstSenders.has(request.id)) this.#firstSenders.set(request.id, request.sender);
      if (fault === 'hangs') return;
      if (fault === 'fails') return answer({ status: 500 });
      if (fault === 'busy') return answer({ status: 429, retryAfterMs: Math.floor(time.random() * 4) * 1_000 });
      if (fault === 'redirects') return answer({ status: 302, error: 'the receiver redirects to another address' });
      request.isAccepted = true;
      const first = this.#firstSenders.get(request.id) ?? request.sender;
      if (first !== request.sender) note('webhook: delivered after a takeover', request.handler);
      if (fault === 'loses answers') return answer({ error: 'socket hang up' });
      answer({ status: 200 }, fault === 'late' ? between(time.random, 500, 1.2 * LIMITS.webhookAnswerMs) : undefined);
    });
  }
}
