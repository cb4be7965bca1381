/** What is done in the database again and again by itself: commands expire, old packets go. */
import { type ExpiryOptions, startExpiry } from './expiry.js';
import { type SweeperOptions, startSweeper } from './sweep.js';

export interface UpkeepOptions extends Omit<SweeperOptions, 'log'> {
  readonly log: (room: string) => SweeperOptions['log'] & ExpiryOptions['log'];
}

export function startUpkeep({ log, ...options }: UpkeepOptions): { stop(): Promise<unknown> } {
  const parts = [startExpiry({ ...options, log: log('expiry') }), startSweeper({ ...options, log: log('sweeper') })];
  return { stop: () => Promise.all(parts.map((part) => part.stop())) };
}
