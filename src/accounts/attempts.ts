/** Counts failed logins per account and per address in MongoDB, so that all instances share the counts. */
import type { MongoClient } from 'mongodb';
import { RateLimiterMongo, type RateLimiterRes } from 'rate-limiter-flexible';
import { tooManyRequests, unavailable } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { networkOf } from '../core/network.js';
import { withTimeout } from '../platform/mongo/driver/errors.js';

export interface Attempts {
  /**
   * Throws 429 when the address has failed too often, or the login has failed too often from this address. An address without
   * a successful login is also refused when the login has failed too often from all addresses together.
   */
  check(login: string, address: string): Promise<void>;
  failed(login: string, address: string): Promise<void>;
  succeeded(login: string, address: string): Promise<void>;
}

/**
 * Failures of an account are counted per address and over all addresses. A stranger who guesses from elsewhere cannot lock the
 * owner out of an address from which the owner has logged in before. Attempts of another `kind` have counts of their own.
 */
export function createAttempts(client: MongoClient, kind = ''): Attempts {
  const limiter = (keyPrefix: string, points: number, durationMs: number = LIMITS.loginFailureWindowMs) =>
    new RateLimiterMongo({
      storeClient: client,
      dbName: client.db().databaseName,
      tableName: 'attempts',
      disableIndexesCreation: true,
      keyPrefix: kind + keyPrefix,
      points,
      duration: durationMs / 1_000,
    });
  const perAccount = limiter('account', LIMITS.loginFailuresPerAccount);
  const perAddress = limiter('address', LIMITS.loginFailuresPerAddress);
  const everywhere = limiter('everywhere', LIMITS.loginFailuresEverywhere);
  const waits = limiter('waits', 1, LIMITS.loginWaitMaxMs);
  const known = limiter('known', 1, LIMITS.loginAddressKnownMs);
  const keysOf = (login: string, address: string) => {
    const account = login.slice(0, LIMITS.nameCharacters);
    const network = networkOf(address);
    return { account, network, both: `${network} ${account}` };
  };
  return {
    async check(login, address) {
      const { account, network, both } = keysOf(login, address);
      const [here, byAddress, all] = await query(() =>
        Promise.all([perAccount.get(both), perAddress.get(network), everywhere.get(account)]),
      );
      checkLimit(here, LIMITS.loginFailuresPerAccount);
      checkLimit(byAddress, LIMITS.loginFailuresPerAddress);
      if (isUsedUp(all, LIMITS.loginFailuresEverywhere) && (await query(() => known.get(both))) === null) {
        checkLimit(all, LIMITS.loginFailuresEverywhere);
      }
    },
    async failed(login, address) {
      const { account, network, both } = keysOf(login, address);
      await query(async () => {
        const counted = [perAccount.penalty(both), perAddress.penalty(network), everywhere.penalty(account)];
        const [here] = await Promise.all(counted);
        if (here?.consumedPoints !== LIMITS.loginFailuresPerAccount) return;
        const { consumedPoints: times } = await waits.penalty(both);
        const waitMs = Math.min(LIMITS.loginFailureWindowMs * 2 ** (times - 1), LIMITS.loginWaitMaxMs);
        if (times > 1) await perAccount.block(both, waitMs / 1_000);
      });
    },
    async succeeded(login, address) {
      const { both } = keysOf(login, address);
      const knownS = LIMITS.loginAddressKnownMs / 1_000;
      await query(() => Promise.all([perAccount.delete(both), waits.delete(both), known.set(both, 1, knownS)]));
    },
  };
}

const isUsedUp = (used: RateLimiterRes | null, max: number): used is RateLimiterRes =>
  used !== null && used.consumedPoints >= max;

function checkLimit(used: RateLimiterRes | null, max: number): void {
  if (isUsedUp(used, max)) throw tooManyRequests(used.msBeforeNext / 1_000, 'too many failed logins');
}

async function query<T>(operation: () => Promise<T>): Promise<T> {
  try {
    return await withTimeout(operation, LIMITS.databaseAnswerMs);
  } catch (error) {
    throw unavailable('the counters of failed logins are unavailable', error);
  }
}
