/** Messages by one POST: to a topic of ntfy, and to a chat of Telegram. Through the same checks of addresses as webhooks. */
import type { Severity } from '../core/rule/severity.js';
import type { RequestOutcome, Sender } from '../webhooks/request.js';
import { type Attempt, type Message, SENT } from './message.js';

const AGENT = 'Vigil-Notifications';
const PRIORITIES: Readonly<Record<Severity, string>> = { info: '3', warning: '4', critical: '5' };

/** A header as RFC 2047 writes what is not ASCII. */
const toHeader = (text: string): string =>
  /^[\x20-\x7e]*$/.test(text) ? text : `=?UTF-8?B?${Buffer.from(text).toString('base64')}?=`;

/** https://docs.ntfy.sh/publish/ */
export async function sendToTopic(
  sender: Sender,
  address: string,
  { id, title, text, link, severity }: Message,
  signal: AbortSignal,
): Promise<Attempt> {
  const headers = {
    'content-type': 'text/plain; charset=utf-8',
    'user-agent': AGENT,
    'idempotency-key': id,
    title: toHeader(title),
    priority: PRIORITIES[severity],
    ...(link !== null && { click: link }),
  };
  // What a receiver of the user's choice answers is not shown: it may be one that only the server reaches.
  const { answer: _, ...outcome } = await sender.send({
    url: new URL(address),
    headers,
    body: Buffer.from(text),
    signal,
  });
  return toAttempt({ ...outcome, answer: '' });
}

export interface TelegramSettings {
  readonly token: string;
  /** Of the Bot API, without a slash at its end. */
  readonly url: string;
}

/** https://core.telegram.org/bots/api#sendmessage */
export async function sendToChat(
  sender: Sender,
  { token, url }: TelegramSettings,
  { address, message, signal }: { address: string; message: Message; signal: AbortSignal },
): Promise<Attempt> {
  const { id, title, text, link } = message;
  const whole = [title, text, ...(link === null ? [] : [link])].join('\n\n');
  const body = JSON.stringify({ chat_id: address, text: whole, link_preview_options: { is_disabled: true } });
  const headers = { 'content-type': 'application/json', 'user-agent': AGENT, 'idempotency-key': id };
  const target = new URL(`${url}/bot${token}/sendMessage`);
  return toAttempt(await sender.send({ url: target, headers, body: Buffer.from(body), signal }));
}

/** What may succeed later: too early, too many requests, time-outs, and faults of the receiver. */
const PASSING: ReadonlySet<number> = new Set([408, 425, 429]);

export function toAttempt({ status, error, answer, retryAfterMs }: RequestOutcome): Attempt {
  if (status === null) return { error: 'no answer', detail: error, isFinal: false, retryAfterMs };
  if (status >= 200 && status < 300) return SENT;
  const isRedirect = status >= 300 && status < 400;
  const text = `answered ${status}${isRedirect ? ', and redirects are not followed' : ''}`;
  const isFinal = status < 500 && !PASSING.has(status);
  return { error: text, detail: answer === '' || isRedirect ? text : `${text}: ${answer}`, isFinal, retryAfterMs };
}
