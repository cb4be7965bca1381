/** Messages to browsers, also while no page is open: encrypted for one browser, through the push service of its maker. */
import { ECDH } from 'node:crypto';
import webPush from 'web-push';
import { LIMITS } from '../core/limits.js';
import type { PushAddress } from '../core/notification.js';
import { SECOND_MS } from '../core/units.js';
import type { Sender } from '../webhooks/request.js';
import { type Attempt, type Message, shorten } from './message.js';
import { toAttempt } from './push.js';
import type { PushKeys } from './push-keys.js';

/** The push service knows the browser no longer, RFC 8030, section 7.3: its user has withdrawn the permission, or deleted its data. */
const GONE: ReadonlySet<number | null> = new Set([404, 410]);

/** Of its key `p256dh`. */
export const NO_POINT = 'expected a point of the curve P-256';
const NO_KEYS = 'the database did not answer: try again';

/** `src/console/service-worker.ts` reads it. */
function toPayload({ id, title, text, link, severity }: Message): string {
  for (let characters = text.length; ; characters = Math.floor(characters / 2)) {
    const payload = JSON.stringify({ id, title, text: shorten(text, characters), link, severity });
    if (Buffer.byteLength(payload) <= LIMITS.pushBytes || characters === 0) return payload;
  }
}

/** Whether messages can be encrypted with it. */
export function isPushKey({ keys }: PushAddress): boolean {
  try {
    ECDH.convertKey(Buffer.from(keys.p256dh, 'base64url'), 'prime256v1');
    return true;
  } catch {
    return false;
  }
}

/** RFC 8030, 8291 and 8292. */
export async function sendToBrowser(
  { sender, pushKeys, contact }: { readonly sender: Sender; readonly pushKeys: PushKeys; readonly contact: string },
  address: PushAddress,
  message: Message,
  signal: AbortSignal,
): Promise<Attempt> {
  if (!isPushKey(address)) return { error: NO_POINT, detail: NO_POINT, isFinal: true, retryAfterMs: null };
  const keys = await pushKeys().catch(() => null);
  if (keys === null) return { error: 'no answer', detail: NO_KEYS, isFinal: false, retryAfterMs: null };
  const { endpoint, headers, body } = webPush.generateRequestDetails(address, toPayload(message), {
    vapidDetails: { subject: contact, ...keys },
    TTL: LIMITS.pushLifetimeMs / SECOND_MS,
    urgency: message.severity === 'critical' ? 'high' : 'normal',
    // Until the browser has it, a repeated attempt takes the place of the first one.
    topic: message.id.replaceAll('-', '').slice(0, 32),
  });
  const { 'Content-Length': _length, ...rest } = headers as Record<string, unknown>;
  const texts = Object.entries(rest).map(([name, value]) => [name.toLowerCase(), String(value)]);
  const outcome = await sender.send({
    url: new URL(endpoint),
    headers: Object.fromEntries(texts),
    body: body as Buffer,
    signal,
  });
  if (GONE.has(outcome.status)) {
    const error = 'the browser takes no more messages';
    return { error, detail: error, isFinal: true, isGone: true, retryAfterMs: null };
  }
  // What a receiver of the user's choice answers is not shown: it may be one that only the server reaches.
  return toAttempt({ ...outcome, answer: '' });
}
