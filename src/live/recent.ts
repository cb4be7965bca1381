/** The changes of the last moments: whoever was away only for those is told from memory what came meanwhile. */
import type { Change, HistoryPage } from '../model/change.js';
import { LIMITS } from '../model/limits.js';
import { isAfter } from '../model/position.js';
import { isAudible } from './events.js';

export interface Recent {
  /** Begins anew: nothing before this position is known. */
  begin(position: string): void;
  note(change: Change): void;
  /** For as long as nothing is noted, nothing is known. */
  rest(): void;
  /** What came after the position, then what comes; null when that is too long ago. */
  open(position: string): AsyncGenerator<HistoryPage, never> | null;
}

/** `told` is the position up to which changes were noted and told. */
export function createRecent(told: () => string): Recent {
  let changes: Change[] = [];
  let [from, bytes] = ['', 0];
  let isResting = false;
  const dropOldest = (): void => {
    const half = changes.splice(0, Math.ceil(changes.length / 2));
    from = half.at(-1)?.position ?? from;
    for (const change of half) bytes -= change.bytes;
  };
  async function* pages(position: string): AsyncGenerator<HistoryPage, never> {
    let at = position;
    for (;;) {
      // Dropped while its reader was slow: it has to come back.
      if (isResting || isAfter(from, at)) throw new Error('what came meanwhile is no longer in memory');
      const upTo = told();
      const missed = changes.slice(indexAfter(changes, at), indexAfter(changes, at) + LIMITS.recentPage);
      const isLast = missed.length < LIMITS.recentPage;
      at = isLast ? upTo : (missed.at(-1)?.position ?? upTo);
      yield { changes: missed, upTo: at };
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
    note(change) {
      if (isResting) begin(told());
      if (!isAudible(change)) return;
      changes.push(change);
      bytes += change.bytes;
      if (changes.length > LIMITS.recentChanges || bytes > LIMITS.recentBytes) dropOldest();
    },
    open: (position) =>
      from !== '' && !isResting && !isAfter(from, position) && !isAfter(position, told()) ? pages(position) : null,
  };
}

/** Where the changes after the position begin; they are in the order of their positions. */
function indexAfter(changes: readonly Change[], position: string): number {
  let [low, high] = [0, changes.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isAfter((changes[middle] as Change).position, position)) high = middle;
    else low = middle + 1;
  }
  return low;
}
