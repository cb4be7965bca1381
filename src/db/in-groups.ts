/** Many items, dealt with in groups. */
import { setImmediate as turn } from 'node:timers/promises';

/** The items in batches of at most `size`, in their order. */
export function* inBatches<Item>(items: readonly Item[], size: number): Generator<Item[]> {
  for (let from = 0; from < items.length; from += size) yield items.slice(from, from + size);
}

export interface Grouping {
  /** How many items go together. */
  readonly most: number;
  /** How many groups are under way at a time. */
  readonly atOnce: number;
  /** How long after one group the next one begins at the soonest: an item that comes alone does not wait. */
  readonly apartMs: number;
}

interface Group<Item, Result> {
  readonly items: Item[];
  readonly result: Promise<Result>;
  readonly begin: () => void;
}

/**
 * Gives a function that does its item together with others: all that come in one turn of the event loop, or while as many
 * groups as may be are under way, go into the next one. So a storm costs a few large groups, and not more of the database's
 * connections. The result of a group, or its failure, is everyone's in it.
 */
export function createGrouped<Item, Result>(
  { most, atOnce, apartMs }: Grouping,
  run: (items: readonly Item[]) => Promise<Result>,
): (item: Item) => Promise<Result> {
  const waiting: Group<Item, Result>[] = [];
  let underWay = 0;
  let nextMs = 0;
  let timer: NodeJS.Timeout | null = null;
  const beginNext = (): void => {
    while (underWay < atOnce && timer === null) {
      const pauseMs = nextMs - performance.now();
      if (pauseMs > 0 && waiting.length > 0) {
        timer = setTimeout(() => {
          timer = null;
          beginNext();
        }, pauseMs);
        return;
      }
      const group = waiting.shift();
      if (group === undefined) return;
      underWay++;
      nextMs = performance.now() + apartMs;
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
    const goOn = (): void => {
      underWay--;
      beginNext();
    };
    result.then(goOn, goOn);
    const group = { items, result, begin };
    waiting.push(group);
    return group;
  };
  return (item) => {
    const last = waiting.at(-1);
    const group = last !== undefined && last.items.length < most ? last : open();
    group.items.push(item);
    if (group.items.length === 1) void turn().then(beginNext);
    return group.result;
  };
}
