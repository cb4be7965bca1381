/** Ends what sessions of other processes have open. */
import type { Binary } from 'mongodb';
import { toApiError } from '../../../core/errors.js';
import type { Database } from './client.js';
import { mapDriverErrors } from './errors.js';

/**
 * Ends what is open in these sessions. MongoDB does that to a transaction of a client that has died after a minute only, and
 * until then nobody else can write what it has written.
 */
export async function endSessions(database: Database, sessions: readonly Binary[]): Promise<void> {
  if (sessions.length === 0) return;
  try {
    await mapDriverErrors(() => database.admin.command({ killSessions: sessions.map((id) => ({ id })) }));
  } catch (error) {
    // Where that is not permitted the minute has to pass.
    if (toApiError(error).status === 503) throw error;
  }
}
