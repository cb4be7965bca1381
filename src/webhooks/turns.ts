/** Begins sends in turns by tenant, and only a few in each turn of the event loop: one tenant's messages must not keep the process busy for long. */
import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';

export interface Turns<T> {
  /** The queue of this tenant wants to begin a send. */
  ask(tenant: string, queue: T): void;
  stop(): void;
}

/** `begin` begins one send of the queue; returns whether it may want another one. */
export function createTurns<T>(begin: (queue: T) => boolean): Turns<T> {
  /** The tenant and the queue whose turn is next come first. */
  const tenants = new Map<string, Set<T>>();
  let isScheduled = false;
  const add = (tenant: string, queue: T): void => {
    const queues = tenants.get(tenant);
    if (queues === undefined) tenants.set(tenant, new Set([queue]));
    else queues.add(queue);
  };
  const beginOne = (): void => {
    const [tenant, queues] = tenants.entries().next().value as [string, Set<T>];
    const [queue] = queues as Iterable<T> as [T];
    tenants.delete(tenant);
    queues.delete(queue);
    if (queues.size > 0) tenants.set(tenant, queues);
    if (begin(queue)) add(tenant, queue);
  };
  const run = (): void => {
    isScheduled = false;
    for (let begun = 0; begun < LIMITS.webhookSendsPerTurn && tenants.size > 0; begun++) beginOne();
    if (tenants.size > 0) schedule();
  };
  const schedule = (): void => {
    if (isScheduled) return;
    isScheduled = true;
    clock.setImmediate(run);
  };
  return {
    ask(tenant, queue) {
      add(tenant, queue);
      schedule();
    },
    stop: () => tenants.clear(),
  };
}
