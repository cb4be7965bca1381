/** Sends live events to an address, for example of this computer, as Vigil would call a webhook: the same messages, signed. */
import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { PlainError, UsageError } from '../program.js';
import { toBody, toMessageId } from '../webhooks/message.js';
import { createSecret, sign } from '../webhooks/signature.js';

export interface ForwardedEvent {
  readonly event: string;
  readonly data: object;
  readonly position: string | null;
}

export interface Forwarder {
  readonly secret: string;
  /** Sends the event after those before it. */
  forward(event: ForwardedEvent): void;
  /** Resolves when everything was sent, or given up. */
  idle(): Promise<void>;
}

const ANSWER_MS = 15_000;
const ATTEMPTS = 3;
const BETWEEN_ATTEMPTS_MS = 1_000;
const MAX_WAITING = 10_000;
const SECRET = /^whsec_[A-Za-z0-9+/]{32,}={0,2}$/;

/** `say` is called with what happened to each message. */
export function createForwarder(to: string, given: string | undefined, say: (text: string) => void): Forwarder {
  const url = URL.canParse(to) ? new URL(to) : null;
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new UsageError('--forward: expected an address such as http://localhost:3000');
  const secret = given || createSecret();
  if (!SECRET.test(secret)) throw new PlainError('WEBHOOK_SECRET: expected whsec_ and base64 of at least 24 bytes');
  let waiting = 0;
  let last = Promise.resolve();
  return {
    secret,
    forward(event) {
      if (waiting >= MAX_WAITING) return say(`${event.event}  dropped: ${MAX_WAITING} messages are waiting`);
      waiting++;
      last = last.then(() => send(url, secret, event, say)).finally(() => waiting--);
    },
    idle: () => last,
  };
}

async function send(url: URL, secret: string, event: ForwardedEvent, say: (text: string) => void): Promise<void> {
  const id = toMessageId(randomBytes(12).toString('hex'));
  const message = { type: event.event, timeMs: Date.now(), position: event.position };
  const body = Buffer.from(toBody({ ...message, data: Buffer.from(JSON.stringify(event.data)) }, null) as string);
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const startMs = performance.now();
    const { isTaken, text } = await post(url, { id, secret, body });
    say(`${event.event} ${id}  ${text}, ${Math.round(performance.now() - startMs)} ms`);
    if (isTaken) return;
    if (attempt < ATTEMPTS) await wait(BETWEEN_ATTEMPTS_MS);
  }
  say(`${event.event} ${id}  given up after ${ATTEMPTS} attempts`);
}

async function post(
  url: URL,
  { id, secret, body }: { id: string; secret: string; body: Buffer },
): Promise<{ isTaken: boolean; text: string }> {
  const timestampS = Math.floor(Date.now() / 1_000);
  const headers = {
    'Content-Type': 'application/json',
    'User-Agent': 'Vigil-Webhooks',
    'webhook-id': id,
    'webhook-timestamp': String(timestampS),
    'webhook-signature': sign([secret], { id, timestampS, body }),
  };
  const signal = AbortSignal.timeout(ANSWER_MS);
  try {
    const answer = await fetch(url, {
      method: 'POST',
      headers,
      body: new Uint8Array(body),
      redirect: 'manual',
      signal,
    });
    await answer.arrayBuffer();
    return { isTaken: answer.ok, text: String(answer.status) };
  } catch (error) {
    const { cause, message } = error as Error;
    return { isTaken: false, text: (cause as Error | undefined)?.message || message };
  }
}
