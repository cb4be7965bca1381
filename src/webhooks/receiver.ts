/** The receiver of one webhook, for all partitions of this instance: its connections, its breaker, how much is sent to it. */
import type { Breaker } from './breaker.js';
import { toMessageId } from './message.js';
import type { RequestOutcome, Sender } from './request.js';
import { sign } from './signature.js';
import type { Webhook } from './webhook.js';

export interface Receiver {
  readonly breaker: Breaker;
  readonly sender: Sender;
  running: number;
}

/** Sends a message: the same bytes by the same id each time, signed for the moment. */
export function sendMessage(
  { sender }: Pick<Receiver, 'sender'>,
  { stored, settings }: Webhook,
  { id, body, nowMs, signal }: { id: string; body: string; nowMs: number; signal: AbortSignal },
): Promise<RequestOutcome> {
  const bytes = Buffer.from(body);
  const timestampS = Math.floor(nowMs / 1_000);
  const message = { id: toMessageId(id), timestampS, body: bytes };
  const valid = stored.secrets.filter(({ untilMs }) => untilMs === null || untilMs > nowMs);
  const headers = {
    ...settings.headers,
    'content-type': 'application/json',
    'user-agent': 'Vigil-Webhooks',
    'webhook-id': message.id,
    'webhook-timestamp': String(timestampS),
    'webhook-signature': sign(
      valid.map(({ secret }) => secret),
      message,
    ),
  };
  return sender.send({ url: new URL(settings.url), headers, body: bytes, signal });
}

export const isSuccess = ({ status }: Pick<RequestOutcome, 'status'>): boolean =>
  status !== null && status >= 200 && status < 300;
