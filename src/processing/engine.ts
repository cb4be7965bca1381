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
import { catchUp, isNeeded, waitForCommits } from './catch-up.js';
import { createCommits } from './commit.js';
import { type Committer, createCommitter } from './committer.js';
import {
  addTasks,
  createSource,
  findDone,
  type Holding,
  isFull,
  LIVE_FEED,
  type PlannedTask,
  type Progress,
  passTo,
  progressesOf,
  progressOf,
  pushTasks,
  queueFor,
  type Source,
  type TenantQueue,
} from './holding.js';
import { type Leases, startLeases } from './leases.js';
import { createPartitions } from './partitions.js';
import type { IsWanted, Processor, Task } from './processor.js';

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
  /** Adds tasks of one tenant without a change; false where the partition takes none now: it is not live, or has enough. */
  offer(processor: Processor, partition: number, tasks: readonly Task[]): boolean;
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
  readonly feed: { begun: { readonly position: string }; done: { readonly position: string } };
  refills: number;
}

export function createEngine(options: EngineOptions): Engine {
  const holdings = new Map<number, Holding>();
  const owner = clock.randomId();
  const onLost = (holding: Holding): void => dropHolding(holdings, holding);
  const commits = createCommits(options.database, owner);
  const feed = { begun: { position: '' }, done: { position: '' } };
  const livePosition = (): string => feed.done.position;
  const committer = createCommitter({ ...options, commits, holdings, livePosition, onLost });
  const state: State = { ...options, owner, holdings, committer, feed, refills: 0 };
  let leases: Leases | null = null;
  return {
    begin: (position) => begin(state, position),
    apply: (change) => apply(state, change),
    position: () => feed.begun.position,
    offer: (processor, partition, tasks) => offer(state, processor, partition, tasks),
    async start() {
      const { position } = feed.begun;
      await createPartitions(options.database, { count: LIMITS.partitions, position });
      leases ??= startLeases({
        database: options.database,
        owner,
        sessions: commits.sessions,
        holdings,
        onLost,
        log: options.log,
        findDone: (holding) => (holding.isCommitting ? null : findDone(holding, livePosition())),
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
  const isBehind = (holding: Holding): boolean => progressesOf(holding).some(({ source }) => source !== LIVE_FEED);
  const queues = all.flatMap((holding) => [...holding.queues.values()]);
  return {
    partitions: all.length,
    behind: all.filter(isBehind).length,
    tasks: queues.reduce((sum, { tasks }) => sum + tasks.length, 0),
    refills,
  };
}

/** Changes between the last one and this position were missed: all of them are read from the history. */
function begin(state: State, position: string): void {
  const reader = createSource();
  for (const holding of state.holdings.values()) for (const one of progressesOf(holding)) leaveFeed(state, one, reader);
  state.feed.begun = { position };
  state.feed.done = state.feed.begun;
  void follow(state, reader);
}

/** What comes after the change that the live feed is done with is read from the history. */
function leaveFeed({ feed }: State, progress: Progress, reader: Source): void {
  if (progress.source !== LIVE_FEED) return;
  progress.source = reader;
  passTo(progress, feed.done.position);
}

function apply(state: State, change: Change): void | Promise<void> {
  state.feed.begun = change;
  const planned = plan(state, change, LIVE_FEED);
  const end = (): void => {
    state.feed.done = change;
  };
  if (planned !== undefined) return planned.then(end);
  end();
}

/** Plans the change with every processor, for what comes from this source; a promise where one of them has to look something up. */
function plan(state: State, change: Change, source: Source): undefined | Promise<void> {
  if (state.holdings.size === 0) return undefined;
  // What was planned before is not wanted again.
  const isWanted: IsWanted = (partition, tenant) => {
    const holding = findHolding(state, { partition, tenant }, source);
    return holding !== undefined && isAfter(change.position, progressOf(holding, tenant).planned);
  };
  const results: (readonly Task[] | Promise<readonly Task[]>)[] = [];
  let isPending = false;
  for (const processor of state.processors) {
    const tasks = processor.plan(change, isWanted);
    if (tasks instanceof Promise) isPending = true;
    results.push(tasks);
  }
  if (!isPending) {
    add(state, change, { source, results: results as (readonly Task[])[] });
    return undefined;
  }
  return Promise.all(results).then((all) => add(state, change, { source, results: all }));
}

/** The partition, where this source plans it for the tenant. */
function findHolding(
  { holdings }: State,
  { partition, tenant }: Pick<Task, 'partition' | 'tenant'>,
  source: Source,
): Holding | undefined {
  const holding = holdings.get(partition);
  return holding !== undefined && progressOf(holding, tenant).source === source ? holding : undefined;
}

function add(
  state: State,
  change: Change,
  { source, results }: { source: Source; results: readonly (readonly Task[])[] },
): void {
  if (results.every((tasks) => tasks.length === 0)) return;
  for (const tasks of groupTasks(results)) {
    const [{ task }] = tasks;
    // It may have been lost, or have fallen behind, since.
    const holding = findHolding(state, task, source);
    if (holding === undefined) continue;
    const queue = queueFor(holding, task.tenant, state.feed.done.position);
    if (source === LIVE_FEED && isFull(queue, state.holdings)) fallBehind(state, task.tenant);
    else addTasks(queue, change.position, tasks);
    if (source !== LIVE_FEED && isFull(queue, state.holdings)) source.full.add(queue);
  }
  state.committer.wake();
}

type Group = [PlannedTask, ...PlannedTask[]];

/** Those of each tenant and partition together. */
function groupTasks(results: readonly (readonly Task[])[]): Iterable<Group> {
  const groups = new Map<string, Group>();
  for (const [processor, tasks] of results.entries()) {
    for (const task of tasks) {
      const key = `${task.partition} ${task.tenant}`;
      const same = groups.get(key);
      if (same === undefined) groups.set(key, [{ processor, task }]);
      else same.push({ processor, task });
    }
  }
  return groups.values();
}

function offer(state: State, processor: Processor, partition: number, tasks: readonly Task[]): boolean {
  const [first] = tasks;
  const holding = first === undefined ? undefined : findHolding(state, { partition, tenant: first.tenant }, LIVE_FEED);
  if (first === undefined || holding === undefined) return false;
  const queue = queueFor(holding, first.tenant, state.feed.done.position);
  if (isFull(queue, state.holdings)) return false;
  const index = state.processors.indexOf(processor);
  const planned = tasks.map((task) => ({ processor: index, task }));
  pushTasks(queue, planned);
  state.committer.wake();
  return true;
}

/** More than can be committed now: the rest of this tenant is read from the history later, by one reader for all partitions. */
function fallBehind(state: State, tenant: string): void {
  const reader = createSource();
  for (const holding of state.holdings.values()) {
    if (progressOf(holding, tenant).source !== LIVE_FEED) continue;
    const queue = queueFor(holding, tenant, state.feed.done.position);
    leaveFeed(state, queue, reader);
    reader.full.add(queue);
  }
  void follow(state, reader);
}

/** Tenants that had tasks may be far behind: the others do not wait for them. */
function acquire(state: State, taken: readonly Holding[]): void {
  const ofRest = createSource();
  const ofTenants = createSource();
  for (const { owned, rest, queues } of taken) {
    rest.source = ofRest;
    for (const queue of queues.values()) queue.source = ofTenants;
    for (const processor of state.processors) processor.acquire(owned);
  }
  for (const reader of [ofRest, ofTenants]) void follow(state, reader);
}

/** Brings what the reader reads up to the live feed, however often the history breaks. */
async function follow(state: State, reader: Source): Promise<void> {
  const parts = catchUpParts(state, reader);
  for (let failures = 0; isNeeded(parts); failures++) {
    try {
      await waitForRoom(state, reader);
      await catchUp(parts);
    } catch (error) {
      state.log.warn({ err: error, failures }, 'failed to read the history of partitions; retrying');
      await clock.wait(backoffMs(failures + 1, FIRST_PAUSE_MS, LIMITS.databaseRetryPauseMaxMs, clock.random()), {
        ref: false,
      });
    }
  }
}

/** Waits for a tenant that has enough tasks; where others are read beside it, it goes on by itself later. */
async function waitForRoom(state: State, reader: Source): Promise<void> {
  for (const queue of reader.full) {
    while (queue.source === reader && isFull(queue, state.holdings)) {
      if (isAlone(state, queue)) await waitForCommits();
      else part(state, queue);
    }
    reader.full.delete(queue);
  }
}

/** Whether nothing else has the same source. */
const isAlone = ({ holdings }: State, { source, tenant }: TenantQueue): boolean =>
  [...holdings.values()].every(
    ({ rest, queues }) =>
      rest.source !== source && [...queues.values()].every((one) => one.source !== source || one.tenant === tenant),
  );

function part(state: State, { source, tenant }: TenantQueue): void {
  const reader = createSource();
  for (const holding of state.holdings.values()) {
    if (progressOf(holding, tenant).source !== source) continue;
    const queue = queueFor(holding, tenant, state.feed.done.position);
    queue.source = reader;
    reader.full.add(queue);
  }
  void follow(state, reader);
}

function catchUpParts(state: State, reader: Source): Parameters<typeof catchUp>[0] {
  return {
    reader,
    holdings: state.holdings,
    openHistory: state.openHistory,
    processors: state.processors,
    now: state.now,
    livePosition: () => state.feed.begun.position,
    plan: (change) => plan(state, change, reader),
    addRefill(processor, tasks, isMeant) {
      for (const task of tasks) {
        const holding = findHolding(state, task, reader);
        if (holding === undefined || !isMeant(progressOf(holding, task.tenant))) continue;
        const queue = queueFor(holding, task.tenant, state.feed.done.position);
        pushTasks(queue, [{ processor, task }]);
        if (isFull(queue, state.holdings)) reader.full.add(queue);
      }
    },
    waitForRoom: () => waitForRoom(state, reader),
    wake: () => state.committer.wake(),
    onRefill(partitions, fromMs) {
      state.refills++;
      state.onRefill(partitions, fromMs);
    },
  };
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
