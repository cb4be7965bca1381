/** Requests that wait for a command of an object: woken when its journal changes, by whatever instance; bounded in number. */
import { tooManyRequests, unavailable } from '../errors.js';
import type { Change } from '../model/change.js';
import { LIMITS } from '../model/limits.js';

export interface Watch {
  /** Resolves with true as soon as there is news that was not taken yet; with false when the time is over, or the watch. */
  next(timeoutMs: number): Promise<boolean>;
  /** Can be called again. */
  end(): void;
}

export interface Arrivals {
  /** From now on no news of the object's commands is missed. Throws 429 (too many of the caller's), 503 (too many in all). */
  watch(objectId: string, caller: string): Watch;
  apply(change: Change): void;
  /** Changes were lost: everyone looks for themselves. */
  wakeAll(): void;
  /** Ends every watch, so that those who wait are answered. */
  stop(): void;
}

type Waiter = Watch & { readonly caller: string; wake(): void };

export function createArrivals(): Arrivals {
  const waiters = new Map<string, Set<Waiter>>();
  let [count, stopped] = [0, false];
  const all = (): Waiter[] => [...waiters.values()].flatMap((some) => [...some]);
  const callers = new Map<string, number>();
  const countFor = (caller: string, change: number): void => {
    count += change;
    const left = (callers.get(caller) ?? 0) + change;
    if (left > 0) callers.set(caller, left);
    else callers.delete(caller);
  };
  const remove = (objectId: string, waiter: Waiter): void => {
    const same = waiters.get(objectId);
    if (!same?.delete(waiter)) return;
    countFor(waiter.caller, -1);
    if (same.size === 0) waiters.delete(objectId);
  };
  return {
    watch(objectId, caller) {
      const same = waiters.get(objectId) ?? new Set();
      // Of the caller's alone: those of others, of viewers of the object for example, do not keep its device from waiting.
      const own = callers.get(caller) ?? 0;
      const here = own < LIMITS.commandWaitersPerObject ? own : countOf(same, caller);
      if (here >= LIMITS.commandWaitersPerObject) {
        throw tooManyRequests(1, `${here} requests of yours wait for a command of this object already`);
      }
      if (own >= LIMITS.commandWaitersPerCaller)
        throw tooManyRequests(1, `${own} requests of yours wait for commands already`);
      // However many wait, there is room for one of each device.
      if (count >= LIMITS.commandWaiters && own > 0) throw unavailable('too many requests wait for commands');
      const waiter = createWaiter(caller, () => remove(objectId, waiter));
      waiters.set(objectId, same.add(waiter));
      countFor(caller, 1);
      if (stopped) waiter.end();
      return waiter;
    },
    apply({ store, objectId }) {
      if (store !== 'commands' || objectId === null) return;
      for (const waiter of waiters.get(objectId) ?? []) waiter.wake();
    },
    wakeAll() {
      for (const waiter of all()) waiter.wake();
    },
    stop() {
      stopped = true;
      for (const waiter of all()) waiter.end();
    },
  };
}

const countOf = (waiters: ReadonlySet<Waiter>, caller: string): number =>
  [...waiters].filter((waiter) => waiter.caller === caller).length;

function createWaiter(caller: string, onEnd: () => void): Waiter {
  let [news, ended] = [false, false];
  let resume = (): void => undefined;
  const hasReason = (): boolean => news || ended;
  return {
    caller,
    wake() {
      news = true;
      resume();
    },
    async next(timeoutMs) {
      if (!hasReason()) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, timeoutMs);
          resume = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      const came = news && !ended;
      news = false;
      return came;
    },
    end() {
      ended = true;
      resume();
      onEnd();
    },
  };
}
