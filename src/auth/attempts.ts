/** Failed logins of users, counted per account and per address in MongoDB, so that every instance knows of them. */
import type { MongoClient } from 'mongodb';
import { RateLimiterMongo, type RateLimiterRes } from 'rate-limiter-flexible';
import { withinTime } from '../db/documents.js';
import { tooManyRequests, unavailable } from '../errors.js';
import { LIMITS } from '../model/limits.js';
import { networkOf } from '../model/network.js';

export interface Attempts {
  /** Throws 429 when this address failed too often, or this login did: from here, or, where nobody logged in from here, anywhere. */
  check(login: string, address: string): Promise<void>;
  failed(login: string, address: string): Promise<void>;
  succeeded(login: string, address: string): Promise<void>;
}

/**
 * An account is counted by address, and all addresses together: a stranger who guesses elsewhere does not lock its owner
 * out, wherever the owner has logged in before.
 */
export function createAttempts(client: MongoClient): Attempts {
  const limiter = (keyPrefix: string, points: number, durationMs: number = LIMITS.loginFailureWindowMs) =>
    new RateLimiterMongo({
      storeClient: client,
      dbName: client.db().databaseName,
      tableName: 'attempts',
      keyPrefix,
      points,
      duration: durationMs / 1_000,
    });
  const perAccount = limiter('account', LIMITS.loginFailuresPerAccount);
  const perAddress = limiter('address', LIMITS.loginFailuresPerAddress);
  const everywhere = limiter('everywhere', LIMITS.loginFailuresEverywhere);
  const waits = limiter('waits', 1, LIMITS.loginWaitMaxMs);
  const known = limiter('known', 1, LIMITS.loginAddressKnownMs);
  const keysOf = (login: string, address: string) => {
    const [account, network] = [login.slice(0, LIMITS.nameCharacters), networkOf(address)];
    return { account, network, both: `${network} ${account}` };
  };
  return {
    async check(login, address) {
      const { account, network, both } = keysOf(login, address);
      const [here, byAddress, all] = await stored(() =>
        Promise.all([perAccount.get(both), perAddress.get(network), everywhere.get(account)]),
      );
      refuseFrom(here, LIMITS.loginFailuresPerAccount);
      refuseFrom(byAddress, LIMITS.loginFailuresPerAddress);
      if (isUsedUp(all, LIMITS.loginFailuresEverywhere) && (await stored(() => known.get(both))) === null) {
        refuseFrom(all, LIMITS.loginFailuresEverywhere);
      }
    },
    async failed(login, address) {
      const { account, network, both } = keysOf(login, address);
      await stored(async () => {
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
      await stored(() => Promise.all([perAccount.delete(both), waits.delete(both), known.set(both, 1, knownS)]));
    },
  };
}

const isUsedUp = (used: RateLimiterRes | null, most: number): used is RateLimiterRes =>
  used !== null && used.consumedPoints >= most;

function refuseFrom(used: RateLimiterRes | null, most: number): void {
  if (isUsedUp(used, most)) throw tooManyRequests(used.msBeforeNext / 1_000, 'too many failed logins');
}

async function stored<T>(operation: () => Promise<T>): Promise<T> {
  try {
    return await withinTime(operation, LIMITS.databaseAnswerMs);
  } catch (error) {
    throw unavailable('the count of failed logins is away', error);
  }
}
