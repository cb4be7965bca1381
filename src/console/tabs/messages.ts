/** What tabs of one user tell each other: which signals the leader received, and where a follower is. */
import { type EventSignal, positionOf } from '../../client/event-source.js';

/** Where a stream is: null if it has not begun; empty after a gap, until the next signal. */
export type Place = string | null;

/** The signals that follow `from`, for every tab: each takes those that it has not received. */
interface Batch {
  readonly kind: 'batch';
  readonly from: Place;
  readonly signals: readonly EventSignal[];
  /** The place that was asked from, in an answer. */
  readonly answers?: Place;
}

/** Asks for the signals after `since`. */
interface Question {
  readonly kind: 'ask';
  readonly since: Place;
}

/** The leader has lost its connection: every tab is told as by its own. `status` is 0 where there was no answer. */
interface End {
  readonly kind: 'end';
  readonly status: number;
}

export type Message = Batch | Question | End;

export interface Channel {
  postMessage(message: Message): void;
  addEventListener(name: 'message', listener: (event: { readonly data: unknown }) => void): void;
  removeEventListener(name: 'message', listener: (event: { readonly data: unknown }) => void): void;
  close(): void;
}

/** Null for what is no message of the console. */
export function parseMessage(data: unknown): Message | null {
  const message = (data ?? {}) as Partial<Batch> & Partial<Question> & Partial<End>;
  const isPlace = (value: unknown): boolean => value === null || typeof value === 'string';
  const isKnown =
    (message.kind === 'batch' && isPlace(message.from) && Array.isArray(message.signals)) ||
    (message.kind === 'ask' && isPlace(message.since)) ||
    (message.kind === 'end' && typeof message.status === 'number');
  return isKnown ? (message as Message) : null;
}

export const placeAfter = (signal: EventSignal): string => positionOf(signal) ?? '';

/** In the order of their values (RFC 4648, base64url). */
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/**
 * Whether the first position comes after the second. Positions are opaque to clients, but the console is of the same version as its
 * service (core/position.ts): the order of bytes, written as base64url.
 */
export function isLater(first: string, second: string): boolean {
  let same = 0;
  while (same < second.length && first[same] === second[same]) same++;
  if (same >= first.length || same >= second.length) return first.length > second.length && same >= second.length;
  return DIGITS.indexOf(first[same] as string) > DIGITS.indexOf(second[same] as string);
}
