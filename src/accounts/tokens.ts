/** Access tokens: JSON Web Tokens that name a user and an entity of `tokens`; removing the entity revokes the token. */
import { createSecretKey } from 'node:crypto';
import jwt from 'jsonwebtoken';
import { LRUCache } from 'lru-cache';
import { cacheSize } from '../core/cache-size.js';
import { isId } from '../core/entity.js';
import { LIMITS } from '../core/limits.js';

const ALGORITHM = 'HS256';
const ISSUER = 'vigil';

/** `expiresAtMs` is a whole second: RFC 7519 counts seconds. */
export interface Claims {
  readonly userId: string;
  readonly tokenId: string;
  readonly expiresAtMs: number;
}

export interface Tokens {
  sign(claims: Claims, issuedAtMs: number): string;
  /** Returns the claims of a token that we signed and that has not expired; else null. */
  verify(token: string): Claims | null;
}

/** The first secret signs, all of them verify: an operator can replace a secret without revoking tokens. */
export function createTokens(secrets: readonly string[], now: () => number): Tokens {
  // Created once: from a string, jsonwebtoken would create a KeyObject for every token.
  const keys = secrets.map((secret) => createSecretKey(Buffer.from(secret, 'utf8')));
  const verified = new LRUCache<string, Claims>(cacheSize(LIMITS.cachedTokens));
  return {
    sign({ userId, tokenId, expiresAtMs }, issuedAtMs) {
      const payload = { type: 'access', iat: issuedAtMs / 1_000, exp: expiresAtMs / 1_000 };
      const options = {
        algorithm: ALGORITHM,
        issuer: ISSUER,
        audience: ISSUER,
        subject: userId,
        jwtid: tokenId,
      } as const;
      return jwt.sign(payload, keys[0] as (typeof keys)[number], options);
    },
    verify(token) {
      const known = verified.get(token);
      if (known !== undefined) return known.expiresAtMs > now() ? known : null;
      if (token.length > LIMITS.tokenCharacters) return null;
      for (const key of keys) {
        const claims = verifyWith(key, token, now());
        if (claims === null) continue;
        verified.set(token, claims);
        return claims;
      }
      return null;
    },
  };
}

function verifyWith(key: ReturnType<typeof createSecretKey>, token: string, nowMs: number): Claims | null {
  try {
    const { header, payload } = jwt.verify(token, key, {
      algorithms: [ALGORITHM],
      issuer: ISSUER,
      audience: ISSUER,
      clockTimestamp: Math.floor(nowMs / 1_000),
      complete: true,
    });
    if (typeof payload === 'string' || 'crit' in header) return null;
    const { sub, jti, exp, iat, type } = payload;
    if (type !== 'access' || !isId(sub) || !isId(jti) || typeof exp !== 'number' || typeof iat !== 'number')
      return null;
    // The clock of the issuing instance may be ahead. Expiry follows our own clock, without allowance.
    if (iat * 1_000 > nowMs + LIMITS.clockSkewMs) return null;
    return { userId: sub, tokenId: jti, expiresAtMs: exp * 1_000 };
  } catch {
    return null;
  }
}
