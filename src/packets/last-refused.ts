/** The last refused things of each entity. They are written together, at most once within a moment. */
import { ObjectId } from 'mongodb';
import { clock, type Timer } from '../platform/clock.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';

export interface LastRefused<Item> {
  record(entityId: string, refused: readonly Item[]): void;
  /** Those of an entity, the oldest first. */
  list(entityId: string): Promise<readonly Item[]>;
  /** Stores all pending ones. */
  stop(): Promise<void>;
}

export interface LastRefusedOptions<Item> {
  readonly database: Database;
  readonly collection: string;
  readonly perEntity: number;
  /** Of all entities. */
  readonly pending: number;
  readonly delayMs: number;
  readonly keptMs: number;
  readonly shorten: (item: Item) => Item;
  readonly log: { warn(details: object, message: string): void };
  readonly now: () => number;
}

interface Stored<Item> {
  readonly _id: ObjectId;
  readonly last: Item[];
  readonly expires: Date;
}

export function createLastRefused<Item>(options: LastRefusedOptions<Item>): LastRefused<Item> {
  const { database, collection, perEntity, log, now } = options;
  let pending = new Map<string, Item[]>();
  let count = 0;
  let timer: Timer | undefined;
  let storing = Promise.resolve();
  const storePending = async (): Promise<void> => {
    const taken = pending;
    pending = new Map();
    count = 0;
    if (taken.size === 0) return;
    try {
      await store(options, taken, new Date(now() + options.keptMs));
    } catch (error) {
      log.warn({ err: error, collection, entities: taken.size }, 'failed to store why packets were refused');
    }
  };
  const flush = (): Promise<void> => {
    clock.clearTimer(timer);
    timer = undefined;
    storing = storing.then(storePending);
    return storing;
  };
  return {
    record(entityId, refused) {
      const waiting = pending.get(entityId) ?? [];
      const last = waiting.concat(refused.slice(-perEntity).map(options.shorten)).slice(-perEntity);
      const more = last.length - waiting.length;
      // Only a fault of very many devices fills it.
      if (last.length === 0 || count + more > options.pending) return;
      count += more;
      pending.set(entityId, last);
      timer ??= clock.setTimeout(() => void flush(), options.delayMs);
    },
    async list(entityId) {
      await flush();
      const stored = database.db.collection<Stored<Item>>(collection);
      const found = await mapDriverErrors(() => stored.findOne({ _id: new ObjectId(entityId) as never }));
      return (found?.last as Item[] | undefined) ?? [];
    },
    stop: flush,
  };
}

async function store<Item>(
  { database, collection, perEntity }: LastRefusedOptions<Item>,
  taken: ReadonlyMap<string, readonly Item[]>,
  expires: Date,
): Promise<void> {
  const updates = [...taken].map(([entityId, last]) => ({
    updateOne: {
      filter: { _id: new ObjectId(entityId) },
      update: { $push: { last: { $each: [...last], $slice: -perEntity } }, $set: { expires } } as never,
      upsert: true,
    },
  }));
  await mapDriverErrors(() => database.db.collection(collection).bulkWrite(updates, { ordered: false }));
}

/** Of an entity that was removed. */
export async function forgetLastRefused(database: Database, collection: string, entityId: string): Promise<void> {
  await mapDriverErrors(() => database.db.collection(collection).deleteOne({ _id: new ObjectId(entityId) }));
}
