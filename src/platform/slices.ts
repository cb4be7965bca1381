/** Splits long synchronous work into slices and yields to the event loop between them. */

import { LIMITS } from '../core/limits.js';
import { clock } from './clock.js';

/** Like `items.map(convert)`, in slices; `items` may also be made one by one. */
export async function mapInSlices<Item, Result>(
  items: Iterable<Item>,
  convert: (item: Item, index: number) => Result,
): Promise<Result[]> {
  const results: Result[] = [];
  await eachInSlices(items, (item) => {
    results.push(convert(item, results.length));
    return null;
  });
  return results;
}

/**
 * Uses each item, without blocking the event loop. Of all work that takes several slices, one slice runs in a turn of the event loop:
 * together they would block it. Where `use` returns a promise, it is awaited.
 */
export async function eachInSlices<Item>(
  items: Iterable<Item>,
  use: (item: Item) => Promise<void> | null,
): Promise<void> {
  if (turns.clock === clock && turns.waiting > 0) await waitForTurn();
  let sinceMs = clock.steadyMs();
  for (const item of items) {
    const used = use(item);
    if (used !== null) await used;
    if (clock.steadyMs() - sinceMs < LIMITS.turnMs) continue;
    await waitForTurn();
    sinceMs = clock.steadyMs();
  }
}

/** The work that waits for a turn of its own. */
let turns = newTurns();

function newTurns() {
  return { clock, waiting: 0, last: Promise.resolve() };
}

/** Resolves in a turn that no other work has, after those that wait already. */
async function waitForTurn(): Promise<void> {
  // What waits for another clock, as in the simulation, may wait for ever.
  if (turns.clock !== clock) turns = newTurns();
  const own = turns;
  own.waiting++;
  own.last = own.last.then(() => own.clock.nextTurn());
  await own.last;
  own.waiting--;
}
