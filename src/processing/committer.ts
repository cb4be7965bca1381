/** Turns the tasks of all held partitions into outputs, and commits them together: one transaction at a time. */

import { backoffMs } from '../core/backoff.js';
import { toApiError } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';
import { type Commits, FencedError, type OutputWrite } from './commit.js';
import type { Holding } from './holding.js';
import { endCommit, findWaiting, type Part, type PartOptions, preparePart, prepareParts } from './parts.js';
import { ENDLESS } from './processor.js';

const FIRST_PAUSE_MS = 50;

export interface CommitterOptions extends PartOptions {
  readonly commits: Commits;
  readonly onLost: (holding: Holding) => void;
}

export interface Committer {
  /** Called when tasks were added. */
  wake(): void;
  /** Resolves when nothing of these partitions, which get no more tasks, is being committed. */
  idle(left: readonly Holding[]): Promise<void>;
  /** Ends retries: what is not committed by then is left to the next owner. */
  stop(): Promise<void>;
}

export function createCommitter(options: CommitterOptions): Committer {
  const stopping = new AbortController();
  const { signal } = stopping;
  let running: Promise<void> | null = null;
  let round: Promise<Round> | null = null;
  let isWoken = false;
  let first = 0;
  const run = async (): Promise<void> => {
    for (let failures = 0; isWoken && !signal.aborted; ) {
      isWoken = false;
      // Tasks of one turn of the event loop are committed together.
      await clock.nextTurn();
      for (let waiting = findWaiting(options.holdings, first); waiting.length > 0 && !signal.aborted; ) {
        // Another partition begins next time.
        first = (waiting[0] as Holding).owned.index + 1;
        round = commitRound(options, waiting, signal);
        failures = (await round).hasFailed ? failures + 1 : 0;
        if (failures > 0) await pause(failures, signal);
        waiting = findWaiting(options.holdings, first);
      }
    }
    running = null;
  };
  return {
    wake() {
      isWoken = true;
      running ??= run();
    },
    async idle(left) {
      if (left.some(({ isCommitting }) => isCommitting)) await round;
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

const pause = (failures: number, signal: AbortSignal): Promise<unknown> =>
  clock
    .wait(backoffMs(failures, FIRST_PAUSE_MS, LIMITS.databaseRetryPauseMaxMs, clock.random()), { signal })
    .catch(() => undefined);

interface Round {
  /** Whether tasks could not be prepared: they wait on. */
  readonly hasFailed: boolean;
}

/** Commits tasks of these partitions, once. Never rejects. */
async function commitRound(
  options: CommitterOptions,
  waiting: readonly Holding[],
  signal: AbortSignal,
): Promise<Round> {
  const { parts, hasFailed } = await prepareParts(options, waiting);
  try {
    await commitParts(options, parts, signal);
  } catch (error) {
    // Whoever takes them next begins after what was stored.
    options.log.error({ err: error }, 'failed to commit outputs; their partitions are taken anew');
    for (const { holding } of parts) options.onLost(holding);
  }
  // Outputs that were given up are not done: their partitions must not be taken for idle.
  if (!signal.aborted) for (const { holding } of parts) endCommit(holding);
  return { hasFailed };
}

/** Retries until everything is committed, or belongs to another instance. */
async function commitParts(options: CommitterOptions, all: readonly Part[], signal: AbortSignal): Promise<void> {
  let parts = all;
  for (let failures = 0; parts.length > 0 && !signal.aborted; ) {
    try {
      await commit(options, parts);
      return;
    } catch (error) {
      if (error instanceof FencedError) {
        const isLost = ({ advance }: Part): boolean => error.indexes.includes(advance.index);
        for (const { holding } of parts.filter(isLost)) options.onLost(holding);
        parts = parts.filter((part) => !isLost(part));
      } else if (toApiError(error).status === 503) {
        options.log.warn({ err: error, failures: ++failures }, 'failed to commit outputs; retrying');
        await pause(failures, signal);
      } else {
        await splitFailed(options, parts, error, signal);
        return;
      }
    }
  }
}

async function commit({ commits }: CommitterOptions, parts: readonly Part[]): Promise<void> {
  const writes = joinWrites(parts.flatMap(({ outputs }) => outputs.flatMap((one) => one.writes)));
  await commits.commit({ advances: parts.map(({ advance }) => advance), writes });
  for (const { holding, advance, committed, outputs } of parts) {
    holding.commits++;
    for (const [queue, position] of committed) queue.position = position;
    holding.lastNumber = advance.lastNumber;
    for (const one of outputs) one.committed();
  }
}

/** Outputs that the database always refuses are found by halves and dropped, so that they block nothing. */
async function splitFailed(
  options: CommitterOptions,
  parts: readonly Part[],
  error: unknown,
  signal: AbortSignal,
): Promise<void> {
  const [part] = parts;
  if (part === undefined || parts.length > 1) {
    for (const one of parts) await commitParts(options, [one], signal);
    return;
  }
  const { holding, taken, next, outputs } = part;
  if (outputs.length === 0) return options.onLost(holding);
  if (taken.length === 1) {
    const which = taken.map(({ processor, task }) => options.processors[processor]?.describe(task))[0];
    const details = { err: error, partition: holding.owned.index, ...which };
    options.log.error(details, 'dropped an output that cannot be stored');
    return commitParts(options, [{ ...part, outputs: [] }], signal);
  }
  const half = Math.ceil(taken.length / 2);
  const first = await preparePart(options, holding, {
    taken: taken.slice(0, half),
    next: taken[half],
    turn: ENDLESS,
  });
  await commitParts(options, [first], signal);
  const second = await preparePart(options, holding, { taken: taken.slice(half), next, turn: ENDLESS });
  await commitParts(options, [second], signal);
}

function joinWrites(writes: readonly OutputWrite[]): OutputWrite[] {
  const joined = new Map<string, OutputWrite['operations'][number][]>();
  for (const { collection, operations } of writes) {
    const same = joined.get(collection);
    if (same === undefined) joined.set(collection, [...operations]);
    else same.push(...operations);
  }
  return [...joined].map(([collection, operations]) => ({ collection, operations }));
}
