/**
 * Turns the change stream into work that is done by exactly one instance. Changes belong to partitions; an instance acts on
 * those it has a lease of. What comes of a change and the partition's new position are stored in one transaction, so that
 * whoever takes over goes on where the last owner stopped.
 */

import { backoffMs } from '../core/backoff.js';
import type { Change, OpenHistory } from '../core/change.js';
import { LIMITS } from '../core/limits.js';
import { isAfter } from '../core/position.js';
import { clock } from '../platform/clock.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { catchUp } from './catch-up.js';
import { createCommits } from './commit.js';
import { type Committer, createCommitter } from './committer.js';
import { addTasks, areFull, type Holding, type PlannedTask, pushTasks } from './holding.js';
import { type Leases, startLeases } from './leases.js';
import { createPartitions } from './partitions.js';
import type { Processor, Task } from './processor.js';

const FIRST_PAUSE_MS = 50;

export interface EngineOptions {
  readonly database: Database;
  readonly openHistory: OpenHistory;
  readonly processors: readonly Processor[];
  /** Told that the history of these partitions is gone, and that they are filled again from what is stored. */
  readonly onRefill: (partitions: readonly number[], fromMs: number) => void;
  readonly log: { warn(details: object, message: string): void; error(details: object, message: string): void };
  readonly now: () => number;
}

export interface Engine {
  /** Where the live feed begins, also after a gap. */
  begin(position: string): void;
  /** One change of the live feed. */
  apply(change: Change): void | Promise<void>;
  /** Up to where the live feed has come. */
  position(): string;
  /** Creates the partitions, and takes its share of them from then on. Throws 503. */
  start(): Promise<void>;
  stats(): EngineStats;
  /** Gives back every partition. */
  stop(): Promise<void>;
}

export interface EngineStats {
  readonly partitions: number;
  /** Those that are being brought up to the live feed. */
  readonly behind: number;
  /** Tasks that wait to be committed. */
  readonly tasks: number;
  /** How often the history was gone. */
  readonly refills: number;
}

interface State extends EngineOptions {
  readonly owner: string;
  readonly holdings: Map<number, Holding>;
  readonly committer: Committer;
  /** The change that the live feed began with last, and the one it is done with. */
  begun: { readonly position: string };
  done: { readonly position: string };
  refills: number;
}

export function createEngine(options: EngineOptions): Engine {
  const holdings = new Map<number, Holding>();
  const owner = clock.randomId();
  const onLost = (holding: Holding): void => dropHolding(holdings, holding);
  const commits = createCommits(options.database, owner);
  const committer = createCommitter({ ...options, commits, holdings, onLost });
  const start = { position: '' };
  const state: State = { ...options, owner, holdings, committer, begun: start, done: start, refills: 0 };
  let leases: Leases | null = null;
  return {
    begin: (position) => begin(state, position),
    apply: (change) => apply(state, change),
    position: () => state.begun.position,
    async start() {
      const position = state.begun.position;
      await createPartitions(options.database, { count: LIMITS.partitions, position });
      leases ??= startLeases({
        database: options.database,
        owner,
        sessions: commits.sessions,
        holdings,
        onLost,
        log: options.log,
        idlePosition: (holding) => idlePosition(state, holding),
        onTaken: (taken) => acquire(state, taken),
        leave: (left) => leave(state, left),
        onRenewed: committer.wake,
      });
    },
    stats: () => statsOf(state),
    async stop() {
      // First: giving partitions back waits for what is being committed, which is retried for as long as the database is away.
      const stopped = committer.stop();
      await leases?.stop();
      await stopped;
      await commits.stop();
    },
  };
}

function statsOf({ holdings, refills }: State): EngineStats {
  const all = [...holdings.values()];
  return {
    partitions: all.length,
    behind: all.filter(({ isLive }) => !isLive).length,
    tasks: all.reduce((sum, { tasks }) => sum + tasks.length, 0),
    refills,
  };
}

/** Changes between the last one and this position were missed: every partition reads them from the history. */
function begin(state: State, position: string): void {
  const behind = [...state.holdings.values()].filter(({ isLive }) => isLive);
  for (const holding of behind) leaveFeed(state, holding);
  state.begun = { position };
  state.done = state.begun;
  if (behind.length > 0) void follow(state, behind);
}

/** What comes after the change that the live feed is done with is read from the history. */
function leaveFeed({ done }: State, holding: Holding): void {
  holding.isLive = false;
  if (isAfter(done.position, holding.planned)) holding.planned = done.position;
}

function apply(state: State, change: Change): void | Promise<void> {
  state.begun = change;
  const planned = plan(state, change, state.holdings, true);
  const end = (): void => {
    state.done = change;
  };
  if (planned !== undefined) return planned.then(end);
  end();
}

type Wanted = ReadonlyMap<number, Holding>;

/** Plans the change with every processor; a promise where one of them has to look something up. */
function plan(state: State, change: Change, wanted: Wanted, isLive: boolean): undefined | Promise<void> {
  if (wanted.size === 0) return undefined;
  const isWanted = (partition: number): boolean => wanted.has(partition);
  const results: (readonly Task[] | Promise<readonly Task[]>)[] = [];
  let isPending = false;
  for (const processor of state.processors) {
    const tasks = processor.plan(change, isWanted);
    if (tasks instanceof Promise) isPending = true;
    results.push(tasks);
  }
  if (!isPending) {
    add(state, change, { wanted, isLive, results: results as (readonly Task[])[] });
    return undefined;
  }
  return Promise.all(results).then((all) => add(state, change, { wanted, isLive, results: all }));
}

function add(
  state: State,
  change: Change,
  { wanted, isLive, results }: { wanted: Wanted; isLive: boolean; results: readonly (readonly Task[])[] },
): void {
  if (results.every((tasks) => tasks.length === 0)) return;
  const byPartition = new Map<number, PlannedTask[]>();
  for (const [processor, tasks] of results.entries()) {
    for (const task of tasks) {
      const same = byPartition.get(task.partition);
      if (same === undefined) byPartition.set(task.partition, [{ processor, task }]);
      else same.push({ processor, task });
    }
  }
  for (const [index, tasks] of byPartition) {
    const holding = wanted.get(index);
    // It may have been lost, or fallen behind, since.
    if (holding === undefined || holding.isLive !== isLive || state.holdings.get(index) !== holding) continue;
    if (isLive && areFull([holding], state.holdings)) fallBehind(state, holding);
    else addTasks(holding, change.position, tasks);
  }
  state.committer.wake();
}

/** More than can be committed now: the rest is read from the history later. */
function fallBehind(state: State, holding: Holding): void {
  leaveFeed(state, holding);
  void follow(state, [holding]);
}

function acquire(state: State, taken: readonly Holding[]): void {
  for (const { owned } of taken) for (const processor of state.processors) processor.acquire(owned);
  void follow(state, taken);
}

/** Brings them up to the live feed, however often the history breaks. */
async function follow(state: State, given: readonly Holding[]): Promise<void> {
  const isBehind = ({ isLive, owned }: Holding): boolean => !isLive && !owned.lost.aborted;
  for (let failures = 0; given.some(isBehind); failures++) {
    try {
      while (areFull(given.filter(isBehind), state.holdings)) await clock.wait(LIMITS.historyWaitMs, { ref: false });
      await catchUp(catchUpParts(state), given.filter(isBehind));
    } catch (error) {
      state.log.warn({ err: error, failures }, 'failed to read the history of partitions; retrying');
      await clock.wait(backoffMs(failures + 1, FIRST_PAUSE_MS, LIMITS.databaseRetryPauseMaxMs, clock.random()), {
        ref: false,
      });
    }
  }
}

function catchUpParts(state: State): Parameters<typeof catchUp>[0] {
  return {
    openHistory: state.openHistory,
    processors: state.processors,
    now: state.now,
    livePosition: () => state.begun.position,
    plan: async (change, wanted) => plan(state, change, wanted, false),
    addRefill(processor, tasks, refilled) {
      for (const task of tasks) {
        const holding = refilled.get(task.partition);
        if (holding !== undefined) pushTasks(holding, [{ processor, task }]);
      }
    },
    isFull: (wanted) => areFull(wanted.values(), state.holdings),
    wake: () => state.committer.wake(),
    onRefill(partitions, fromMs) {
      state.refills++;
      state.onRefill(partitions, fromMs);
    },
  };
}

/** With no task left, everything is done that the live feed is done with, or that was read of the history. */
function idlePosition({ done }: State, { isLive, tasks, isCommitting, position, planned }: Holding): string | null {
  const doneTo = isLive ? done.position : planned;
  if (tasks.length > 0 || isCommitting) return null;
  return isAfter(doneTo, position) ? doneTo : null;
}

function dropHolding(holdings: Map<number, Holding>, holding: Holding): void {
  if (holdings.get(holding.owned.index) === holding) holdings.delete(holding.owned.index);
  holding.lose();
}

/** No task is added any more; what is being committed, or sent, ends first. */
async function leave(state: State, left: readonly Holding[]): Promise<void> {
  for (const holding of left) state.holdings.delete(holding.owned.index);
  await state.committer.idle(left);
  await Promise.all(left.flatMap(({ owned }) => state.processors.map((processor) => processor.leave(owned))));
  for (const holding of left) holding.lose();
}
