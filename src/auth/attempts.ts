/** Failed logins, counted per account and per address in MongoDB, so that every instance knows of them. */
import { isIPv6 } from 'node:net';
import type { MongoClient } from 'mongodb';
import { RateLimiterMongo, RateLimiterRes } from 'rate-limiter-flexible';
import { withinTime } from '../db/documents.js';
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
  const accountKey = (login: string, network: string) => `${network} ${login.slice(0, LIMITS.nameCharacters)}`;
  return {
    async check(login, address) {
      const network = networkOf(address);
      const [account, from] = await stored(() =>
        Promise.all([perAccount.get(accountKey(login, network)), perAddress.get(network)]),
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
      const network = networkOf(address);
      await stored(() => Promise.all([perAccount.consume(accountKey(login, network)), perAddress.consume(network)]));
    },
    async succeeded(login, address) {
      await stored(() => perAccount.delete(accountKey(login, networkOf(address))));
    },
  };
}

/** What one customer of a provider has: an IPv4 address, or the 2^64 addresses of an IPv6 network. */
function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined || !isIPv6(address)) return mapped ?? address;
  const [head = '', tail] = address.replace(/%.*$/, '').toLowerCase().split('::');
  const groups = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const all =
    tail === undefined
      ? groups
      : [...groups, ...Array(Math.max(0, 8 - groups.length - after.length)).fill('0'), ...after];
  return `${all
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`;
}

async function stored<T>(operation: () => Promise<T>): Promise<T | never> {
  try {
    return await withinTime(operation, LIMITS.databaseAnswerMs);
  } catch (error) {
    // What is over the limit is refused by `check` next time.
    if (error instanceof RateLimiterRes) return [null, null] as T;
    throw unavailable('the count of failed logins is away', error);
  }
}
