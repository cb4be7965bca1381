/** Commands that the database ends when nobody waits for their answer: a client that leaves does not end them by itself. */
import type { ClientSession } from 'mongodb';
import type { Database } from './connect.js';

/**
 * Runs a command of the session. When `database.stop` is aborted, the database ends whatever it does in this session; throws
 * the signal's reason then. The session is not to be used by anyone else meanwhile.
 */
export async function runStoppable<T>(
  { admin, stop }: Database,
  session: ClientSession,
  run: () => Promise<T>,
): Promise<T> {
  if (stop === undefined) return run();
  stop.throwIfAborted();
  let ending: Promise<unknown> | undefined;
  const end = (): void => {
    // Where it is not permitted, the command's own time-out ends it.
    ending = admin.command({ killSessions: [session.id] }).catch(() => undefined);
  };
  stop.addEventListener('abort', end);
  try {
    return await run();
  } catch (error) {
    stop.throwIfAborted();
    throw error;
  } finally {
    stop.removeEventListener('abort', end);
    // Else it could end what comes next in a session that is used again.
    await ending;
  }
}
