/** Splits long synchronous work into slices and yields to the event loop between them. */

import { LIMITS } from '../core/limits.js';
import { clock } from './clock.js';

/**
 * Like `items.map(convert)`, without blocking the event loop; `items` may also be made one by one. Of all work that takes several
 * slices, one slice runs in a turn of the event loop: together they would block it.
 */
export async function mapInSlices<Item, Result>(
  items: Iterable<Item>,
  convert: (item: Item, index: number) => Result,
): Promise<Result[]> {
  const results: Result[] = [];
  if (turns.clock === clock && turns.waiting > 0) await waitForTurn();
  let sinceMs = clock.steadyMs();
  for (const item of items) {
    results.push(convert(item, results.length));
    if (clock.steadyMs() - sinceMs < LIMITS.turnMs) continue;
    await waitForTurn();
    sinceMs = clock.steadyMs();
  }
  return results;
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
