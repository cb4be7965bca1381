/** Passwords of devices: sealed before they are stored, so that who may read an object cannot act as its device. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

const SEALED = /^hmac-sha256:([\w-]{22}):([\w-]{43})$/;

export interface DeviceSecrets {
  /** What is stored for a password; what is sealed already (an object that was read and is sent back) stays as it is. */
  seal(password: string): string;
  /** Whether a password is the stored one, in the same time for all; null stands for an object that has none. */
  fits(stored: string | null, password: string): boolean;
}

/**
 * A device's password is a key that a machine made, and thousands of devices come back at once: a keyed hash, not a slow
 * one. `key` is the installation's own and shown nowhere, so that the hash alone is of no use.
 */
export function createDeviceSecrets(key: Buffer): DeviceSecrets {
  const macOf = (salt: string, password: string): Buffer =>
    createHmac('sha256', key).update(salt).update(password).digest();
  return {
    seal(password) {
      if (SEALED.test(password)) return password;
      const salt = randomBytes(16).toString('base64url');
      return `hmac-sha256:${salt}:${macOf(salt, password).toString('base64url')}`;
    },
    fits(stored, password) {
      const [, salt = 'none', mac = ''] = SEALED.exec(stored ?? '') ?? [];
      // What was written past the interface is not sealed: it is compared by the same steps.
      const wanted = mac === '' ? macOf(salt, stored ?? '') : Buffer.from(mac, 'base64url');
      return timingSafeEqual(macOf(salt, password), wanted) && stored !== null && stored !== '';
    },
  };
}
