/** Failed logins, counted per account and per address in MongoDB, so that every instance knows of them. */
import type { MongoClient } from 'mongodb';
import { RateLimiterMongo, RateLimiterRes } from 'rate-limiter-flexible';
import { tooManyRequests, unavailable } from '../errors.js';
import { LIMITS } from '../model/limits.js';

export interface Attempts {
  /** Throws 429 when this address failed too often, or failed too often with this login. */
  check(login: string, address: string): Promise<void>;
  failed(login: string, address: string): Promise<void>;
  succeeded(login: string, address: string): Promise<void>;
}

/** An account is counted by address as well: a stranger who guesses elsewhere does not lock its owner out. */
export function createAttempts(client: MongoClient): Attempts {
  const limiter = (keyPrefix: string, points: number) =>
    new RateLimiterMongo({
      storeClient: client,
      dbName: client.db().databaseName,
      tableName: 'attempts',
      keyPrefix,
      points,
      duration: LIMITS.loginFailureWindowMs / 1_000,
    });
  const perAccount = limiter('account', LIMITS.loginFailuresPerAccount);
  const perAddress = limiter('address', LIMITS.loginFailuresPerAddress);
  const accountKey = (login: string, address: string) => `${address} ${login.slice(0, LIMITS.nameCharacters)}`;
  return {
    async check(login, address) {
      const [account, from] = await stored(() =>
        Promise.all([perAccount.get(accountKey(login, address)), perAddress.get(address)]),
      );
      for (const [used, most] of [
        [account, LIMITS.loginFailuresPerAccount],
        [from, LIMITS.loginFailuresPerAddress],
      ] as const) {
        if (used !== null && used.consumedPoints >= most)
          throw tooManyRequests(used.msBeforeNext / 1_000, 'too many failed logins');
      }
    },
    async failed(login, address) {
      await stored(() => Promise.all([perAccount.consume(accountKey(login, address)), perAddress.consume(address)]));
    },
    async succeeded(login, address) {
      await stored(() => perAccount.delete(accountKey(login, address)));
    },
  };
}

async function stored<T>(operation: () => Promise<T>): Promise<T | never> {
  try {
    return await operation();
  } catch (error) {
    // What is over the limit is refused by `check` next time.
    if (error instanceof RateLimiterRes) return [null, null] as T;
    throw unavailable('the count of failed logins is away', error);
  }
}
