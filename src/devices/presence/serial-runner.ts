/** Runs work that must never run twice at the same time. */

/** A call while the work runs starts one more run afterwards. Resolves, or rejects, when the work that was asked for has ended. */
export function createSerialRunner(work: () => Promise<unknown>): () => Promise<void> {
  let running = null as Promise<void> | null;
  let again = false;
  const run = async (): Promise<void> => {
    try {
      while (again) {
        again = false;
        await work();
      }
    } finally {
      // In the same turn as the last look at `again`: a call in between would otherwise wait for a run that is over.
      running = null;
    }
  };
  return () => {
    again = true;
    running ??= run();
    return running;
  };
}
