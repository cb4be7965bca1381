/**
 * How many messages a user may have sent by tests of channels, and how many reports on request. Codes go to addresses that nobody has
 * confirmed: those are fewer.
 */
import type { MongoClient } from 'mongodb';
import { RateLimiterMongo, RateLimiterRes } from 'rate-limiter-flexible';
import { tooManyRequests, unavailable } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import type { Channel } from '../core/notification.js';
import { HOUR_MS, MINUTE_MS } from '../core/units.js';

/** Counted in the database, so that all instances share the counts. */
export interface TestLimits {
  /** Throws 429, 503. */
  countTests(userId: string, count: number): Promise<void>;
  /** Counts a report that the user has sent now. Throws 429, 503. */
  countRun(userId: string): Promise<void>;
  /** Counts a code to the channel. Returns why none may be sent; null if one may. Throws 503. */
  countCode(userId: string, channel: Channel): Promise<string | null>;
}

export function createTestLimits(client: MongoClient): TestLimits {
  const limiter = (keyPrefix: string, points: number, durationMs: number): RateLimiterMongo =>
    new RateLimiterMongo({
      storeClient: client,
      dbName: client.db().databaseName,
      tableName: 'attempts',
      disableIndexesCreation: true,
      keyPrefix,
      points,
      duration: durationMs / 1_000,
    });
  const tests = limiter('channel tests', LIMITS.channelTests, LIMITS.channelTestsMs);
  const runs = limiter('reports of', LIMITS.scheduleRunsAsked, LIMITS.scheduleRunsAskedMs);
  const codesOfUser = limiter('channel codes of', LIMITS.channelCodesPerUser, LIMITS.channelCodesMs);
  const codesTo = limiter('channel codes to', LIMITS.channelCodesPerAddress, LIMITS.channelCodesMs);
  return {
    async countTests(userId, count) {
      const refused = await consume(tests, userId, count);
      if (refused === null) return;
      const why = `at most ${LIMITS.channelTests} tests of channels within ${LIMITS.channelTestsMs / MINUTE_MS} min`;
      throw tooManyRequests(refused.msBeforeNext / 1_000, why);
    },
    async countRun(userId) {
      const refused = await consume(runs, userId);
      if (refused === null) return;
      const why = `at most ${LIMITS.scheduleRunsAsked} reports sent on request within ${LIMITS.scheduleRunsAskedMs / HOUR_MS} h`;
      throw tooManyRequests(refused.msBeforeNext / 1_000, why);
    },
    async countCode(userId, channel) {
      const period = `within ${LIMITS.channelCodesMs / HOUR_MS} h`;
      if ((await consume(codesOfUser, userId)) !== null) {
        return `at most ${LIMITS.channelCodesPerUser} codes of a user ${period}`;
      }
      if ((await consume(codesTo, toMailbox(channel))) !== null) {
        return `at most ${LIMITS.channelCodesPerAddress} codes to an address ${period}`;
      }
      return null;
    },
  };
}

/** Null if it is within the limit. Throws 503. */
async function consume(limiter: RateLimiterMongo, key: string, count = 1): Promise<RateLimiterRes | null> {
  try {
    await limiter.consume(key, count);
    return null;
  } catch (error) {
    if (error instanceof RateLimiterRes) return error;
    throw unavailable('the counter of tests is unavailable', error);
  }
}

/** Most mail servers ignore the case of an address, and what follows a plus sign: all spellings reach one person. */
const toMailbox = ({ kind, address }: Channel): string =>
  `${kind}:${address.toLowerCase().replace(/\+[^@]*(?=@)/, '')}`;
