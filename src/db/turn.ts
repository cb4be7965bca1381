/** What is asked of the database in one turn of the event loop goes to it together. */
import { LIMITS } from '../model/limits.js';
import { isAway } from './documents.js';

/**
 * Does `items` together with all others that are given for the same `what` before the turn ends: `run` is begun after the
 * last of them came, so that nobody gets what is older than the question. Its result is everyone's; so is its failure where
 * the database is away. Whatever else fails may be one caller's alone: then each is done again by itself.
 */
export type InTurn = <Item, Result>(
  what: string,
  items: readonly Item[],
  run: (items: Item[]) => Promise<Result>,
) => Promise<Result>;

interface Turn {
  readonly items: unknown[];
  readonly result: Promise<unknown>;
}

export function createInTurn(): InTurn {
  let turns = new Map<string, Turn>();
  const begin = (what: string, run: (items: unknown[]) => Promise<unknown>): Turn => {
    const items: unknown[] = [];
    const present = turns;
    const result = new Promise((resolve) => {
      setImmediate(() => {
        // Each turn has a map of its own: nothing is taken out of one (docs/development.md says why).
        if (turns === present) turns = new Map();
        // What throws at once rejects as well.
        resolve(Promise.resolve(items).then(run));
      });
    });
    const turn = { items, result };
    turns.set(what, turn);
    return turn;
  };
  return <Item, Result>(what: string, items: readonly Item[], run: (items: Item[]) => Promise<Result>) => {
    const open = turns.get(what);
    const hasRoom = open !== undefined && open.items.length < LIMITS.itemsPerTurn;
    const turn = hasRoom ? open : begin(what, run as (items: unknown[]) => Promise<unknown>);
    turn.items.push(...items);
    return (turn.result as Promise<Result>).catch((error: unknown) => {
      if (turn.items.length === items.length || isAway(error)) throw error;
      return run([...items]);
    });
  };
}
