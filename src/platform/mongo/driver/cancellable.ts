/** Cancels commands in the database when no client waits for them: closing the connection does not cancel them. */
import type { ClientSession } from 'mongodb';
import type { Database } from './client.js';

/**
 * Runs a command of the session. When `database.stop` is aborted, kills the session and throws the signal's reason. Nothing else
 * may use the session meanwhile.
 */
export async function runCancellable<T>(
  { admin, stop }: Database,
  session: ClientSession,
  run: () => Promise<T>,
): Promise<T> {
  if (stop === undefined) return run();
  stop.throwIfAborted();
  let killing: Promise<unknown> | undefined;
  const kill = (): void => {
    // Without the permission for this, the command runs until its own time-out.
    killing = admin.command({ killSessions: [session.id] }).catch(() => undefined);
  };
  stop.addEventListener('abort', kill);
  try {
    return await run();
  } catch (error) {
    stop.throwIfAborted();
    throw error;
  } finally {
    stop.removeEventListener('abort', kill);
    // Otherwise it could kill the next command of a reused session.
    await killing;
  }
}
