/** What one caller may have of what all share, and what all may have of it together: a part of `LIMITS`. */

const SECOND_MS = 1_000;

export const SHARED_LIMITS = {
  // Lists at once. Quick ones are short pages in the order of an index; pages are longer; scans are whatever else may have to
  // look at everything: counts, filters, searches, other orders.
  quickEntities: 100,
  quickListsAtOnce: 16,
  quickListsPerCaller: 8,
  pagesAtOnce: 4,
  pagesPerCaller: 2,
  scansAtOnce: 3,
  scansPerCaller: 1,
  listsWaiting: 1_000,
  listsWaitingPerCaller: 100,
  listWaitMs: 10 * SECOND_MS,
  // Connections beside one for each list at once: for what ends them.
  listConnectionsMore: 4,

  // Callers of whom nothing is under way and who are remembered all the same.
  idleCallers: 1_000,
} as const;
