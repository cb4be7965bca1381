/** Keeps recent changes in memory for clients that reconnect after a short interruption. */
import type { Change, HistoryPage } from '../core/change.js';
import { LIMITS } from '../core/limits.js';
import { isAfter } from '../core/position.js';
import { isPublishable } from './events.js';

export interface ReplayBuffer {
  /** Clears the buffer: it has no changes before this position. */
  begin(position: string): void;
  add(change: Change): void;
  /** Clears the buffer and stops buffering until the next `add`. */
  rest(): void;
  /** Reads the changes after the position and continues with new ones; null if the position is no longer in the buffer. */
  open(position: string): AsyncGenerator<HistoryPage, never> | null;
}

/** `lastPosition`: the position of the last published change. */
export function createReplayBuffer(lastPosition: () => string): ReplayBuffer {
  let changes: Change[] = [];
  let from = '';
  let bytes = 0;
  let isResting = false;
  const dropOldest = (): void => {
    const half = changes.splice(0, Math.ceil(changes.length / 2));
    from = half.at(-1)?.position ?? from;
    for (const change of half) bytes -= change.bytes;
  };
  async function* pages(position: string): AsyncGenerator<HistoryPage, never> {
    let current = position;
    for (;;) {
      // The reader was too slow: its client has to reconnect.
      if (isResting || isAfter(from, current)) throw new Error('the missed changes are no longer in memory');
      const upTo = lastPosition();
      const start = indexAfter(changes, current);
      const missed = changes.slice(start, start + LIMITS.recentPage);
      const isLast = missed.length < LIMITS.recentPage;
      current = isLast ? upTo : (missed.at(-1)?.position ?? upTo);
      yield { changes: missed, upTo: current };
    }
  }
  const begin = (position: string): void => {
    [changes, from, bytes] = [[], position, 0];
    isResting = false;
  };
  return {
    begin,
    rest() {
      if (!isResting) [changes, bytes] = [[], 0];
      isResting = true;
    },
    add(change) {
      if (isResting) begin(lastPosition());
      if (!isPublishable(change)) return;
      changes.push(change);
      bytes += change.bytes;
      if (changes.length > LIMITS.recentChanges || bytes > LIMITS.recentBytes) dropOldest();
    },
    open: (position) =>
      from !== '' && !isResting && !isAfter(from, position) && !isAfter(position, lastPosition())
        ? pages(position)
        : null,
  };
}

/** The index of the first change after the position, by binary search. */
function indexAfter(changes: readonly Change[], position: string): number {
  let low = 0;
  let high = changes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isAfter((changes[middle] as Change).position, position)) high = middle;
    else low = middle + 1;
  }
  return low;
}
