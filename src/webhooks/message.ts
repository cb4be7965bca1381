/** What is sent: an event in the envelope of Standard Webhooks, made once, so that every attempt sends the same bytes. Pure. */
import type { JsonObject } from '../core/json.js';
import { pickData } from '../core/webhook.js';

export interface EventMessage {
  readonly type: string;
  readonly timeMs: number;
  /** Of the change; null for what was read from storage. */
  readonly position: string | null;
  readonly data: Buffer;
}

/** The body of one event; null where it has none of the fields that are wanted. */
export function toBody({ type, timeMs, position, data }: EventMessage, only: readonly string[] | null): string | null {
  let text = data.toString();
  if (only !== null) {
    const narrowed = pickData(JSON.parse(text) as JsonObject, only);
    if (narrowed === null) return null;
    text = JSON.stringify(narrowed);
  }
  const head = { type, timestamp: new Date(timeMs).toISOString(), ...(position !== null && { position }) };
  return `${JSON.stringify(head).slice(0, -1)},"data":${text}}`;
}

/** The body of several. */
export function toBatchBody(bodies: readonly string[], timeMs: number): string {
  return `{"type":"batch","timestamp":"${new Date(timeMs).toISOString()}","data":[${bodies.join(',')}]}`;
}

/** The `webhook-id` of a message. */
export const toMessageId = (deliveryId: string): string => `msg_${deliveryId}`;
