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
  /** From now on no news of the object's commands is missed. Throws 429 (too many for the object), 503 (too many). */
  watch(objectId: string): Watch;
  apply(change: Change): void;
  /** Changes were lost: everyone looks for themselves. */
  wakeAll(): void;
  /** Ends every watch, so that those who wait are answered. */
  stop(): void;
}

type Waiter = Watch & { wake(): void };

export function createArrivals(): Arrivals {
  const waiters = new Map<string, Set<Waiter>>();
  let [count, stopped] = [0, false];
  const all = (): Waiter[] => [...waiters.values()].flatMap((some) => [...some]);
  const remove = (objectId: string, waiter: Waiter): void => {
    const same = waiters.get(objectId);
    if (!same?.delete(waiter)) return;
    count--;
    if (same.size === 0) waiters.delete(objectId);
  };
  return {
    watch(objectId) {
      const same = waiters.get(objectId) ?? new Set();
      if (same.size >= LIMITS.commandWaitersPerObject) {
        throw tooManyRequests(1, `${same.size} requests wait for a command of this object already`);
      }
      if (count >= LIMITS.commandWaiters) throw unavailable('too many requests wait for commands');
      const waiter = createWaiter(() => remove(objectId, waiter));
      waiters.set(objectId, same.add(waiter));
      count++;
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

function createWaiter(onEnd: () => void): Waiter {
  let [news, ended] = [false, false];
  let resume = (): void => undefined;
  const hasReason = (): boolean => news || ended;
  return {
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
