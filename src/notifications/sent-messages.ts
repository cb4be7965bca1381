/** What was sent to persons lately: the channels of one that run at the same time, all of them here, count storms together. */
import type { SentRow } from './outbox.js';

export interface SentMessages {
  /** Loads what was sent to the user, unless another channel of theirs is at work with it. Throws what `load` and `work` throw. */
  share(userId: string, load: () => Promise<SentRow[]>, work: (sent: SentRow[]) => Promise<void>): Promise<void>;
}

export function createSentMessages(): SentMessages {
  const shared = new Map<string, { channels: number; readonly sent: Promise<SentRow[]> }>();
  return {
    async share(userId, load, work) {
      const one = shared.get(userId) ?? { channels: 0, sent: load() };
      shared.set(userId, one);
      one.channels++;
      try {
        await work(await one.sent);
      } finally {
        one.channels--;
        if (one.channels === 0) shared.delete(userId);
      }
    },
  };
}
