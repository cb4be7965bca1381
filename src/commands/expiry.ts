/** Expires overdue commands every few seconds. All instances do; the writes are idempotent. */

import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { expireCommands } from './command-store.js';

export interface ExpiryOptions {
  readonly database: Database;
  readonly log: { info(details: object, message: string): void; warn(details: object, message: string): void };
  readonly now: () => number;
}

export function startExpiry(options: ExpiryOptions): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const running = run(options, stopping.signal);
  return {
    stop() {
      stopping.abort();
      return running;
    },
  };
}

async function run({ database, log, now }: ExpiryOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      const expired = await expireCommands(database, now());
      if (expired > 0) log.info({ commands: expired }, 'commands expired');
    } catch (error) {
      log.warn({ err: error }, 'failed to expire commands; retrying');
    }
    await clock.wait(LIMITS.expiryCheckMs, { signal }).catch(() => undefined);
  }
}
