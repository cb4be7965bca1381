/** Finds what escapes from a run: a real timer, a socket, a file. What waits for the world outside cannot be repeated. */
import { AsyncLocalStorage, createHook } from 'node:async_hooks';

/**
 * These end before the event loop goes on, or are how virtual time waits for that; sessions of the driver have random names, and buckets are
 * compressed at once.
 */
const HARMLESS: ReadonlySet<string> = new Set([
  'PROMISE',
  'TickObject',
  'Microtask',
  'Immediate',
  'AsyncResource',
  'RANDOMBYTESREQUEST',
  'ZLIB',
]);

/** Whether code belongs to a guarded run: a test runner has timers of its own beside it. */
const guarded = new AsyncLocalStorage<true>();

/** Runs something whose use of what is real has no consequence in the run. */
export const unguarded = <T>(run: () => T): T => guarded.exit(run);

/** Runs it; throws if something escaped. */
export async function guard<T>(run: () => Promise<T>): Promise<T> {
  const found: string[] = [];
  const hook = createHook({
    init(_id, type) {
      if (HARMLESS.has(type) || guarded.getStore() === undefined) return;
      found.push(`${type} ${new Error().stack?.split('\n').slice(2, 8).join('\n')}`);
    },
  }).enable();
  try {
    const result = await guarded.run(true, run);
    if (found.length > 0) throw new Error(`the run used something real: ${found[0]}`);
    return result;
  } finally {
    hook.disable();
    // Otherwise every promise of later runs would go through it.
    guarded.disable();
  }
}
