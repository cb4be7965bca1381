/** Hashes passwords with argon2id, a bounded number at once, with the same work whether or not the user exists. */
import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { hash, verify } from '@node-rs/argon2';
import { unavailable } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';

/** OWASP Password Storage Cheat Sheet: argon2id with 19 MiB, 2 passes, 1 lane. */
const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** Whether the password matches the stored hash. Null stands for an unknown user and takes as long. */
export type Verify = (stored: string | null, password: string) => Promise<boolean>;

/** Returns a new hash where the stored one was made with outdated parameters; else null. */
export type Renew = (stored: string, password: string) => Promise<string | null>;

export interface Passwords {
  /** Throws 503 when too many requests wait. */
  hash(password: string): Promise<string>;
  /** Runs a check when a slot is free. Throws 503 when too many requests wait. */
  withHashSlot<T>(check: (verify: Verify, renew: Renew) => Promise<T>): Promise<T>;
}

/** Each hash occupies a core: one core stays free for everything else. */
const HASHES_AT_ONCE = Math.max(1, Math.min(LIMITS.passwordHashesAtOnce, availableParallelism() - 1));

export async function createPasswords(): Promise<Passwords> {
  const run = createQueue(LIMITS.passwordHashesAtOnce, LIMITS.passwordHashesWaiting);
  // Held only during the hash itself, so that a check that waits for the database does not block another one's hash.
  const withCore = createQueue(HASHES_AT_ONCE, LIMITS.passwordHashesAtOnce);
  const hashOne = (password: string): Promise<string> => withCore(() => hash(password, PARAMETERS));
  const unknownUserHash = await hashOne('nobody has this password');
  const verifyOne: Verify = async (stored, password) => {
    const isMatch = await withCore(() => verify(stored ?? unknownUserHash, password).catch(() => false));
    return isMatch && stored !== null;
  };
  // The prefix before salt and hash: algorithm, version, parameters.
  const currentPrefix = unknownUserHash.split('$', 4).join('$');
  const renewOne: Renew = async (stored, password) =>
    stored.startsWith(`${currentPrefix}$`) ? null : hashOne(password);
  return {
    hash: (password) => run(() => hashOne(password)),
    withHashSlot: (check) => run(() => check(verifyOne, renewOne)),
  };
}

function createQueue(maxRunning: number, maxWaiting: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running >= maxRunning) {
      if (waiting.length >= maxWaiting) throw unavailable('too many logins at once');
      await new Promise<void>((resolve) => waiting.push(resolve));
    } else {
      running++;
    }
    try {
      return await work();
    } finally {
      // The slot passes to the next waiter directly, so that no newcomer can take it.
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}

/** 120 random bits. */
export function generatePassword(): string {
  return randomBytes(15).toString('base64url');
}
