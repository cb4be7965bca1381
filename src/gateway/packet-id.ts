/** The `_id` of a packet that may be stored again, made of what it is: whoever stores it, and however often, it is one. */
import { hash } from 'node:crypto';

/** 64 bits that stand for some bytes. */
export type Digest = (content: Buffer) => bigint;

/**
 * Keyed with a secret of the installation, so that nobody else can tell the `_id` of a message by what it says. Of SHA-256 no
 * more than 64 bits are shown, from which nobody can go on to a longer content: that takes half the time of an HMAC.
 */
export const createDigest =
  (key: Buffer): Digest =>
  (content) =>
    hash('sha256', Buffer.concat([key, content]), 'buffer').readBigUInt64BE(0);

/** The digest of versions before schema version 2: only for what they may have stored. */
export const formerDigest: Digest = (content) => hash('sha1', content, 'buffer').readBigUInt64BE(0);

/** As in any ObjectId, the first four bytes are seconds: packets of one time lie together in the index. */
export function packetIdOf(timeMs: number, content: bigint): string {
  const seconds = (Math.floor(timeMs / 1_000) >>> 0).toString(16).padStart(8, '0');
  return seconds + BigInt.asUintN(64, content).toString(16).padStart(16, '0');
}
