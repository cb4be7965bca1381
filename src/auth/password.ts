/** Password hashes: argon2id, a bounded number at once, and the same work whether or not a user exists. */
import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { hash, verify } from '@node-rs/argon2';
import { unavailable } from '../errors.js';
import { LIMITS } from '../model/limits.js';

/** OWASP Password Storage Cheat Sheet: argon2id with 19 MiB, 2 passes, 1 lane. */
const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** Whether the password fits the stored hash; null stands for a user who is not there and takes as long. */
export type Verify = (stored: string | null, password: string) => Promise<boolean>;

/** The hash to store instead, where the stored one was made with other parameters than those of today; else null. */
export type Renew = (stored: string, password: string) => Promise<string | null>;

export interface Passwords {
  /** The hash to store. Throws 503 when too many are waiting. */
  hash(password: string): Promise<string>;
  /** Runs a check when its turn comes. Throws 503 when too many are waiting. */
  inTurn<T>(check: (verify: Verify, renew: Renew) => Promise<T>): Promise<T>;
}

/** Hashing takes a core each: one is left to everything else. */
const HASHES_AT_ONCE = Math.max(1, Math.min(LIMITS.passwordHashesAtOnce, availableParallelism() - 1));

export async function createPasswords(): Promise<Passwords> {
  const run = createQueue(LIMITS.passwordHashesAtOnce, LIMITS.passwordHashesWaiting);
  // Taken by those whose turn it is, and only while they hash: their questions to the database keep nobody from hashing.
  const onCore = createQueue(HASHES_AT_ONCE, LIMITS.passwordHashesAtOnce);
  const hashOne = (password: string): Promise<string> => onCore(() => hash(password, PARAMETERS));
  const nobody = await hashOne('nobody has this password');
  const verifyOne: Verify = async (stored, password) => {
    const fits = await onCore(() => verify(stored ?? nobody, password).catch(() => false));
    return fits && stored !== null;
  };
  // What stands in front of salt and hash: algorithm, version, parameters.
  const today = nobody.split('$', 4).join('$');
  const renewOne: Renew = async (stored, password) => (stored.startsWith(`${today}$`) ? null : hashOne(password));
  return {
    hash: (password) => run(() => hashOne(password)),
    inTurn: (check) => run(() => check(verifyOne, renewOne)),
  };
}

function createQueue(atOnce: number, most: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running >= atOnce) {
      if (waiting.length >= most) throw unavailable('too many logins at once');
      await new Promise<void>((resolve) => waiting.push(resolve));
    } else {
      running++;
    }
    try {
      return await work();
    } finally {
      // The place passes to the next in line without ever being free.
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}

/** A password for a user who was given none: 120 random bits. */
export function generatePassword(): string {
  return randomBytes(15).toString('base64url');
}
