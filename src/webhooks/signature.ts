/** Secrets and signatures as Standard Webhooks has them. */
import { createHmac, randomBytes } from 'node:crypto';

const PREFIX = 'whsec_';
const SECRET_BYTES = 32;

export const createSecret = (): string => PREFIX + randomBytes(SECRET_BYTES).toString('base64');

/** One signature for each secret that is valid. */
export function sign(
  secrets: readonly string[],
  { id, timestampS, body }: { id: string; timestampS: number; body: Buffer },
): string {
  return secrets
    .map((secret) => {
      const key = Buffer.from(secret.slice(PREFIX.length), 'base64');
      const hmac = createHmac('sha256', key).update(`${id}.${timestampS}.`).update(body);
      return `v1,${hmac.digest('base64')}`;
    })
    .join(' ');
}
