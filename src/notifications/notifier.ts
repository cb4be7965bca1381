/**
 * Tells people about alarms. Each instance works on what belongs to its partitions: the notices of objects, which become messages,
 * and the channels of users. What is due stands in the database, so that a new owner goes on with it.
 */
import { setMaxListeners } from 'node:events';
import type { Change } from '../core/change.js';
import { LIMITS } from '../core/limits.js';
import { clock, type Timer } from '../platform/clock.js';
import { createFairQueue, type FairQueue } from '../platform/fair-queue.js';
import { NO_TASKS, type OwnedPartition, type Processor } from '../processing/processor.js';
import { type LaneParts, runLane } from './lane.js';
import { loadDue, type Notice, postponeNotice } from './notices.js';
import { findDueLanes, type Lane, notificationPartition } from './outbox.js';
import { createSentMessages } from './sent-messages.js';
import { tell } from './telling.js';

/** Several alarms of a moment are looked for once. */
const WAKE_MS = 50;

export interface NotifierOptions extends Omit<LaneParts, 'sentMessages'> {
  readonly log: { warn(details: object, message: string): void };
}

export interface Notifier {
  /** Knows the partitions; it makes no tasks. */
  readonly processor: Processor<never>;
  start(): void;
  stop(): void;
}

interface Owned {
  readonly partition: OwnedPartition;
  /** Ends the requests of its channels. */
  readonly ending: AbortController;
  readonly running: Map<string, Promise<void>>;
}

interface State extends NotifierOptions, LaneParts {
  readonly owned: Map<number, Owned>;
  timer: Timer | undefined;
  waking: Timer | undefined;
  isChecking: boolean;
  readonly queue: FairQueue;
  /** The channels that run or wait. */
  readonly lanesOfTenant: Map<string, number>;
  isStopped: boolean;
}

export function createNotifier(options: NotifierOptions): Notifier {
  const state: State = {
    ...options,
    sentMessages: createSentMessages(),
    owned: new Map(),
    timer: undefined,
    waking: undefined,
    isChecking: false,
    queue: createLaneQueue(),
    lanesOfTenant: new Map(),
    isStopped: false,
  };
  return {
    processor: {
      name: 'notifications',
      plan(change) {
        if (tellsSomething(change)) wake(state);
        return NO_TASKS;
      },
      prepare: () => ({ writes: [], committed: () => undefined }),
      describe: () => ({}),
      acquire: (owned) => acquire(state, owned),
      leave: (owned) => leave(state, owned),
      async *refill() {},
    },
    start() {
      state.timer ??= clock.setInterval(() => void check(state), LIMITS.notificationCheckMs).unref();
    },
    stop() {
      state.isStopped = true;
      clock.clearTimer(state.timer);
      clock.clearTimer(state.waking);
    },
  };
}

const createLaneQueue = (): FairQueue =>
  createFairQueue('notifications', {
    atOnce: LIMITS.notificationLanesAtOnce,
    perCaller: LIMITS.notificationLanesAtOncePerUser,
    perTenant: LIMITS.notificationLanesAtOncePerTenant,
    waiting: Number.POSITIVE_INFINITY,
    // A channel has a lane for alarms, and one for reports.
    waitingPerCaller: 2 * LIMITS.channelsPerUser,
    waitMs: LIMITS.notificationRetryMaxMs,
  });

const tellsSomething = ({ store, kind, changed }: Change): boolean =>
  store === 'alarms' && (kind === 'created' || changed?.includes('status') === true);

function wake(state: State): void {
  if (state.owned.size === 0 || state.waking !== undefined || state.isStopped) return;
  state.waking = clock
    .setTimeout(() => {
      state.waking = undefined;
      void check(state);
    }, WAKE_MS)
    .unref();
}

function acquire(state: State, partition: OwnedPartition): void {
  const ending = new AbortController();
  // Each request of a channel is ended by it.
  setMaxListeners(0, ending.signal);
  const owned: Owned = { partition, ending, running: new Map() };
  state.owned.set(partition.index, owned);
  partition.lost.addEventListener('abort', () => {
    owned.ending.abort();
    if (state.owned.get(partition.index) === owned) state.owned.delete(partition.index);
  });
}

async function leave(state: State, { index }: OwnedPartition): Promise<void> {
  const owned = state.owned.get(index);
  if (owned === undefined) return;
  state.owned.delete(index);
  const all = Promise.all(owned.running.values());
  await Promise.race([all, clock.wait(LIMITS.webhookStopMs, { ref: false })]);
  owned.ending.abort();
  await all;
}

const ownedNow = ({ owned }: State): Owned[] => [...owned.values()].filter(({ partition }) => partition.isOwned());

async function check(state: State): Promise<void> {
  if (state.isChecking || state.isStopped) return;
  const indexes = ownedNow(state).map(({ partition }) => partition.index);
  if (indexes.length === 0) return;
  state.isChecking = true;
  try {
    const due = await loadDue(state.database, indexes, state.now());
    if (due.length > 0) await tellDue(state, due);
    if (due.length === LIMITS.noticesAtOnce) wake(state);
    for (const lane of await findDueLanes(state.database, indexes, state.now())) await startLane(state, lane);
  } catch (error) {
    state.log.warn({ err: error }, 'failed to look for notifications that are due; retrying');
  } finally {
    state.isChecking = false;
  }
}

/**
 * They are told together, and each by itself where that fails: one alarm that takes too long keeps no others waiting. Throws 503 where
 * the database is away.
 */
async function tellDue(state: State, due: readonly Notice[]): Promise<void> {
  try {
    await tell(state, due);
  } catch (error) {
    state.log.warn({ err: error, alarms: due.length }, 'failed to notify of alarms; trying one after the other');
    for (const notice of due) await tellOrPostpone(state, notice);
  }
}

async function tellOrPostpone(state: State, notice: Notice): Promise<void> {
  try {
    await tell(state, [notice]);
  } catch (error) {
    await postponeNotice(state.database, notice, state.now() + LIMITS.notificationRetryMs);
    state.log.warn({ err: error, alarm: notice.alarmId }, 'failed to notify of an alarm; retrying');
  }
}

/**
 * Channels take turns by tenant: those of one tenant, however slow their receivers are, leave places for others, also among those that
 * wait. What finds no place stays due.
 */
async function startLane(state: State, lane: Lane): Promise<void> {
  const { queue, lanesOfTenant } = state;
  const { tenantId = null } = (await state.findAccount(lane.userId)) ?? {};
  const tenant = tenantId ?? lane.userId;
  const count = lanesOfTenant.get(tenant) ?? 0;
  const owned = state.owned.get(notificationPartition(lane.userId));
  const key = laneKey(lane);
  if (owned === undefined || owned.running.has(key) || count >= LIMITS.notificationLanesOfTenant) return;
  const { signal } = owned.ending;
  const run = async (): Promise<void> => {
    try {
      const hasMore = await queue.run({ userId: lane.userId, tenantId }, () => runLane(state, lane, signal), signal);
      if (hasMore) wake(state);
    } catch (error) {
      if (signal.aborted) return;
      state.log.warn({ err: error, user: lane.userId }, 'failed to send notifications; retrying');
    } finally {
      owned.running.delete(key);
      const left = (lanesOfTenant.get(tenant) ?? 1) - 1;
      if (left === 0) lanesOfTenant.delete(tenant);
      else lanesOfTenant.set(tenant, left);
    }
  };
  lanesOfTenant.set(tenant, count + 1);
  owned.running.set(key, run());
}

const laneKey = ({ userId, channel }: Lane): string => `${userId}|${channel}`;
