/** A message to a person, as every channel receives it. Pure. */
import { LIMITS } from '../core/limits.js';
import type { Severity } from '../core/rule/severity.js';

export interface Message {
  /** The same for each attempt: receivers recognize by it what they have. */
  readonly id: string;
  readonly title: string;
  readonly text: string;
  /** Where it is in the console; null where the service does not know its own address. */
  readonly link: string | null;
  readonly severity: Severity;
  /** Of a mail. */
  readonly file?: { readonly name: string; readonly content: Buffer };
}

/** How an attempt ended. */
export interface Attempt {
  /** Why it failed, without anything that is secret; null where the receiver has the message. */
  readonly error: string | null;
  /** The same in full, for the user of the channel. */
  readonly detail: string | null;
  /** Whether another attempt would fail alike. */
  readonly isFinal: boolean;
  /** Whether the channel itself has ended, so that nothing will ever be sent over it. */
  readonly isGone?: boolean;
  readonly retryAfterMs: number | null;
}

export const SENT: Attempt = { error: null, detail: null, isFinal: true, retryAfterMs: null };

/** A text on one line, for subjects and titles. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is removed
export const toLine = (text: string): string => text.replace(/[\u0000-\u001f\u007f\u2028\u2029]+/g, ' ').trim();

/** Cuts a text at a whole character. */
export function shorten(text: string, characters: number): string {
  return text.length <= characters ? text : `${text.slice(0, characters - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

export const toTitle = (text: string): string => shorten(toLine(text), LIMITS.notificationTitleCharacters);

export const toText = (text: string): string => shorten(text.trim(), LIMITS.notificationTextCharacters);
