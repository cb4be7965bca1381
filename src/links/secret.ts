/** The secret of a link: the `_id` of its token and random bytes, of which only the hash is stored. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

const ID_BYTES = 12;
/** Together with the `_id` a multiple of 3 bytes: Base64 without padding. */
const RANDOM_BYTES = 24;
const SECRET = /^[\w-]{48}$/;

export const createSecret = (tokenId: string): string =>
  Buffer.concat([Buffer.from(tokenId, 'hex'), randomBytes(RANDOM_BYTES)]).toString('base64url');

/** The `_id` of the token; null if the text cannot be a secret. */
export const tokenIdIn = (secret: unknown): string | null =>
  typeof secret === 'string' && SECRET.test(secret)
    ? Buffer.from(secret, 'base64url').subarray(0, ID_BYTES).toString('hex')
    : null;

export const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('base64url');

/** In constant time. */
export const isOfHash = (secret: string, hash: string): boolean => {
  const given = Buffer.from(hashOf(secret));
  const stored = Buffer.from(hash);
  return given.length === stored.length && timingSafeEqual(given, stored);
};
