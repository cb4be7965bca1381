/** Opens the database at start: connects, migrates and seeds it, and finishes interrupted work. */

import { settleMoves } from './accounts/group-moves.js';
import { type FirstUser, prepareInstallation } from './accounts/seed.js';
import { LIMITS } from './core/limits.js';
import { sweepStores } from './entities/custom-stores.js';
import type { Database, ServiceClock } from './platform/mongo/driver/client.js';
import { toDatabaseError } from './platform/mongo/driver/errors.js';
import { connectDatabase } from './platform/mongo/schema/connect.js';
import { migrate } from './platform/mongo/schema/migrations.js';

/** Calls `onCreated` as soon as the first administrator is stored. Throws 503 while the database is unavailable. */
export async function openDatabase(
  uri: string,
  firstUser: FirstUser & { readonly onCreated: () => void },
  clock: ServiceClock,
): Promise<Database> {
  const database = await connectDatabase(uri, clock);
  const nowMs = clock.now();
  try {
    await migrate(database);
    if (await prepareInstallation(database, firstUser, nowMs)) firstUser.onCreated();
    await sweepStores(database, nowMs);
    await settleMoves(database, nowMs - LIMITS.moveRecheckMs);
    return database;
  } catch (error) {
    await database.client.close();
    throw toDatabaseError(error);
  }
}
