/** The database as the service finds it when it starts: reached, checked, with all that has to be in it. */
import { LIMITS } from '../model/limits.js';
import { connectDatabase, type Database } from './connect.js';
import { sweepStores } from './custom-stores.js';
import { toDatabaseError } from './documents.js';
import { settleMoves } from './groups.js';
import { type FirstUser, prepareInstallation } from './installation.js';
import { migrate } from './migrations.js';

/** `onMade` is told as soon as the first administrator is stored. Throws 503 while the database is away. */
export async function openDatabase(
  uri: string,
  firstUser: FirstUser & { readonly onMade: () => void },
  nowMs: number,
): Promise<Database> {
  const database = await connectDatabase(uri);
  try {
    await migrate(database);
    if (await prepareInstallation(database, firstUser, nowMs)) firstUser.onMade();
    await sweepStores(database, nowMs);
    await settleMoves(database, nowMs - LIMITS.moveRecheckMs);
    return database;
  } catch (error) {
    await database.client.close();
    throw toDatabaseError(error);
  }
}
