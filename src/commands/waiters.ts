/** Long-polling requests that wait for commands of an object. Changes of commands from any instance wake them; their count is limited. */

import type { Change } from '../core/change.js';
import { tooManyRequests, unavailable } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';

export interface Waiter {
  /** Resolves with true at the first change since the last call, with false after the timeout or `end`. */
  next(timeoutMs: number): Promise<boolean>;
  /** Idempotent. */
  end(): void;
}

export interface CommandWaiters {
  /** Registers for all later changes of the object's commands. Throws 429 (limit per caller), 503 (limit in total). */
  add(objectId: string, caller: string): Waiter;
  apply(change: Change): void;
  /** For a gap in the change stream: every waiter reads again. */
  wakeAll(): void;
  /** Ends all waiters, so that their requests are answered. */
  stop(): void;
}

type PendingWaiter = Waiter & { readonly caller: string; wake(): void };

export function createCommandWaiters(): CommandWaiters {
  const waiters = new Map<string, Set<PendingWaiter>>();
  let count = 0;
  let stopped = false;
  const all = (): PendingWaiter[] => [...waiters.values()].flatMap((ofObject) => [...ofObject]);
  const callers = new Map<string, number>();
  const countFor = (caller: string, change: number): void => {
    count += change;
    const remaining = (callers.get(caller) ?? 0) + change;
    if (remaining > 0) callers.set(caller, remaining);
    else callers.delete(caller);
  };
  const remove = (objectId: string, waiter: PendingWaiter): void => {
    const ofObject = waiters.get(objectId);
    if (!ofObject?.delete(waiter)) return;
    countFor(waiter.caller, -1);
    if (ofObject.size === 0) waiters.delete(objectId);
  };
  return {
    add(objectId, caller) {
      const ofObject = waiters.get(objectId) ?? new Set();
      // Counts the caller's waiters only: other viewers of the object must not keep its device from waiting.
      const own = callers.get(caller) ?? 0;
      const ownOfObject = own < LIMITS.commandWaitersPerObject ? own : countOf(ofObject, caller);
      if (ownOfObject >= LIMITS.commandWaitersPerObject) {
        throw tooManyRequests(1, `${ownOfObject} requests of yours wait for a command of this object already`);
      }
      if (own >= LIMITS.commandWaitersPerCaller)
        throw tooManyRequests(1, `${own} requests of yours wait for commands already`);
      // The total limit never applies to a caller's first waiter: each device can wait.
      if (count >= LIMITS.commandWaiters && own > 0) throw unavailable('too many requests wait for commands');
      const waiter = createWaiter(caller, () => remove(objectId, waiter));
      waiters.set(objectId, ofObject.add(waiter));
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

const countOf = (waiters: ReadonlySet<PendingWaiter>, caller: string): number =>
  [...waiters].filter((waiter) => waiter.caller === caller).length;

function createWaiter(caller: string, onEnd: () => void): PendingWaiter {
  let hasChanged = false;
  let ended = false;
  let resume = (): void => undefined;
  return {
    caller,
    wake() {
      hasChanged = true;
      resume();
    },
    async next(timeoutMs) {
      if (!hasChanged && !ended) {
        await new Promise<void>((resolve) => {
          const timer = clock.setTimeout(resolve, timeoutMs);
          resume = () => {
            clock.clearTimer(timer);
            resolve();
          };
        });
      }
      const result = hasChanged && !ended;
      hasChanged = false;
      return result;
    },
    end() {
      ended = true;
      resume();
      onEnd();
    },
  };
}
