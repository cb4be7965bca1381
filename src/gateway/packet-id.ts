/** The `_id` of a packet that may be stored again, made of what it is: whoever stores it, and however often, it is one. */
import { hash } from 'node:crypto';

/** 64 bits that stand for a text or bytes. */
export const digest = (content: string | Buffer): bigint => hash('sha1', content, 'buffer').readBigUInt64BE(0);

/** As in any ObjectId, the first four bytes are seconds: packets of one time lie together in the index. */
export function packetIdOf(timeMs: number, content: bigint): string {
  const seconds = (Math.floor(timeMs / 1_000) >>> 0).toString(16).padStart(8, '0');
  return seconds + BigInt.asUintN(64, content).toString(16).padStart(16, '0');
}
