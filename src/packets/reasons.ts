/** Words why packets, or fields of them, are not stored. Each text has a bounded length: one request has very many packets. */
import { LIMITS } from '../core/limits.js';

const OTHERS_STORED = '; the other fields are stored';

/** The first reasons of one packet, and how many more there are. `othersStored` of it needs no cut. */
export function joinReasons(reasons: readonly string[]): string {
  const more = reasons.length - LIMITS.reasonsPerPacket;
  const end = more > 0 ? `; and ${more} more` : '';
  const text = reasons.slice(0, LIMITS.reasonsPerPacket).join('; ');
  return cut(text, LIMITS.refusedReasonCharacters - OTHERS_STORED.length - end.length) + end;
}

/** For a packet that is stored without the fields of these joined reasons. */
export const othersStored = (reasons: string): string => reasons + OTHERS_STORED;

export const cutReason = (reason: string): string => cut(reason, LIMITS.refusedReasonCharacters);

const cut = (text: string, characters: number): string =>
  text.length > characters ? `${text.slice(0, characters - 1).toWellFormed()}…` : text;
