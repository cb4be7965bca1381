/**
 * Whether any packets are packed, or about to be. Where none are, readers look for no buckets. That is asked now and then, and holds for
 * a while: a bucket is stored for longer than that before it replaces its rows.
 */
import type { MongoClient } from 'mongodb';
import { LIMITS } from '../../core/limits.js';
import { clock } from '../../platform/clock.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../../platform/mongo/driver/errors.js';
import { hasBuckets } from './packed-repeats.js';

interface Answer {
  readonly hasBuckets: boolean;
  readonly untilMs: number;
}

const answers = new WeakMap<MongoClient, Answer>();
const asking = new WeakMap<MongoClient, Promise<Answer>>();

/** Whether packets may be in buckets now. */
export async function mayHaveBuckets(database: Database): Promise<boolean> {
  const known = answers.get(database.client);
  if (known !== undefined && clock.steadyMs() < known.untilMs) return known.hasBuckets;
  return (await ask(database)).hasBuckets;
}

/** Readers of one moment share a command. */
function ask(database: Database): Promise<Answer> {
  const { client } = database;
  const asked = asking.get(client);
  if (asked !== undefined) return asked;
  const answering = findAny(database)
    .then((answer) => {
      answers.set(client, answer);
      return answer;
    })
    .finally(() => asking.delete(client));
  asking.set(client, answering);
  return answering;
}

async function findAny(database: Database): Promise<Answer> {
  // From the question on, not from the answer.
  const untilMs = clock.steadyMs() + LIMITS.bucketsKnownMs;
  return { hasBuckets: await mapDriverErrors(() => hasBuckets(database)), untilMs };
}

/** Reads rows where there are no buckets, and rows and buckets where there are, or where there have come some meanwhile. */
export async function readEither<T>(database: Database, rows: () => Promise<T>, packed: () => Promise<T>): Promise<T> {
  if (await mayHaveBuckets(database)) return packed();
  const found = await rows();
  return (await mayHaveBuckets(database)) ? packed() : found;
}
