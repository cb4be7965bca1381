/** Processes many items in groups. */
import { clock, type Timer } from '../../clock.js';

/** Yields the items in batches of at most `size`, in order. */
export function* inBatches<Item>(items: readonly Item[], size: number): Generator<Item[]> {
  for (let from = 0; from < items.length; from += size) yield items.slice(from, from + size);
}

export interface BulkQueueOptions {
  /** The largest group. */
  readonly maxItems: number;
  /** How many groups run at a time. */
  readonly atOnce: number;
  /** The minimum time between the starts of two groups. A single item does not wait. */
  readonly apartMs: number;
}

interface Group<Item, Result> {
  readonly items: Item[];
  readonly result: Promise<Result>;
  readonly begin: () => void;
}

/**
 * Returns a function that runs an item in a group with others: all items of one iteration of the event loop, and all that arrive
 * while `atOnce` groups run. A storm of items then costs a few large groups, and no further connections to the database. The
 * items of a group share its result or its error.
 */
export function createBulkQueue<Item, Result>(
  { maxItems, atOnce, apartMs }: BulkQueueOptions,
  run: (items: readonly Item[]) => Promise<Result>,
): (item: Item) => Promise<Result> {
  const waiting: Group<Item, Result>[] = [];
  let running = 0;
  let nextMs = 0;
  let timer: Timer | null = null;
  const beginNext = (): void => {
    while (running < atOnce && timer === null) {
      const pauseMs = nextMs - clock.steadyMs();
      if (pauseMs > 0 && waiting.length > 0) {
        timer = clock.setTimeout(() => {
          timer = null;
          beginNext();
        }, pauseMs);
        return;
      }
      const group = waiting.shift();
      if (group === undefined) return;
      running++;
      nextMs = clock.steadyMs() + apartMs;
      group.begin();
    }
  };
  const open = (): Group<Item, Result> => {
    const items: Item[] = [];
    let begin = (): void => undefined;
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const result = begun.then(() => run(items));
    const onEnd = (): void => {
      running--;
      beginNext();
    };
    result.then(onEnd, onEnd);
    const group = { items, result, begin };
    waiting.push(group);
    return group;
  };
  return (item) => {
    const last = waiting.at(-1);
    const group = last !== undefined && last.items.length < maxItems ? last : open();
    group.items.push(item);
    if (group.items.length === 1) void clock.nextTurn().then(beginNext);
    return group.result;
  };
}
