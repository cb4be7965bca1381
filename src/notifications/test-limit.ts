/** How many test messages a user may have sent: each goes to an address that nobody has confirmed. */
import type { MongoClient } from 'mongodb';
import { RateLimiterMongo, RateLimiterRes } from 'rate-limiter-flexible';
import { tooManyRequests, unavailable } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { MINUTE_MS } from '../core/units.js';

/** Counted in the database, so that all instances share the count. Throws 429, 503. */
export function createTestLimit(client: MongoClient): (userId: string, count: number) => Promise<void> {
  const limiter = new RateLimiterMongo({
    storeClient: client,
    dbName: client.db().databaseName,
    tableName: 'attempts',
    keyPrefix: 'channel tests',
    points: LIMITS.channelTests,
    duration: LIMITS.channelTestsMs / 1_000,
  });
  return async (userId, count) => {
    try {
      await limiter.consume(userId, count);
    } catch (error) {
      if (!(error instanceof RateLimiterRes)) throw unavailable('the counter of tests is unavailable', error);
      const why = `at most ${LIMITS.channelTests} tests of channels within ${LIMITS.channelTestsMs / MINUTE_MS} min`;
      throw tooManyRequests(error.msBeforeNext / 1_000, why);
    }
  };
}
