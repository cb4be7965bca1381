/**
 * Keeps mongod running: restarts it on the same port when it exits, until it is stopped. While the disk is full, it waits for space
 * however long that takes.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServerLog } from './binary.js';
import { describeFullDisk } from './disk.js';
import { bringUp, type Instance, type InstanceSettings, rotateLog, startInstance } from './instance.js';

export type Supervised = {
  /** Resolves with the reason when mongod is stopped, or cannot be restarted. */
  whenExited: Promise<string>;
  stop(): Promise<void>;
};

/** How often a failing start is retried. Starts that fail while the disk is full do not count. */
export type Patience = { failedStarts: number; longestPauseMs: number };

type Supervision = {
  current: Instance;
  settings: InstanceSettings;
  log: ServerLog;
  patience: Patience;
  stopping: AbortSignal;
  fullDiskReportedAt: number;
};

const stopTimeoutMs = 10_000;
const defaultPatience: Patience = { failedStarts: 10, longestPauseMs: 5_000 };
const firstPauseMs = 100;
const shortRunMs = 2_000;
const fullDiskCheckMs = 2_000;
const fullDiskReportMs = 60_000;
const logCheckMs = 3_600_000;

/** Starts mongod and waits until it is writable; calls `onSpawn` before that. */
export async function startReady(
  settings: InstanceSettings,
  onSpawn?: (instance: Instance) => void,
): Promise<Instance> {
  const instance = startInstance(settings);
  onSpawn?.(instance);
  try {
    await bringUp(instance, settings);
    return instance;
  } catch (error) {
    instance.child.kill('SIGKILL');
    await instance.ended;
    throw error;
  }
}

export function supervise(
  first: Instance,
  settings: InstanceSettings,
  log: ServerLog,
  patience: Patience = defaultPatience,
): Supervised {
  const stopping = new AbortController();
  const supervision: Supervision = {
    current: first,
    settings,
    log,
    patience,
    stopping: stopping.signal,
    fullDiskReportedAt: 0,
  };
  const killWithUs = () => supervision.current.child.kill('SIGTERM');
  process.once('exit', killWithUs);
  const logTimer = setInterval(() => rotateLog(settings.folder).catch(() => {}), logCheckMs).unref();
  const whenExited = keepRunning(supervision);
  let stopped: Promise<void> | null = null;
  const stop = async () => {
    stopping.abort();
    await endInstance(supervision.current);
    await whenExited;
    clearInterval(logTimer);
    process.off('exit', killWithUs);
  };
  return {
    whenExited,
    stop() {
      stopped ??= stop();
      return stopped;
    },
  };
}

async function keepRunning(supervision: Supervision): Promise<string> {
  for (let pauseMs = 0; ; ) {
    const startedAt = Date.now();
    const reason = await supervision.current.ended;
    if (supervision.stopping.aborted) return 'stopped';
    supervision.log.warn({ reason }, 'MongoDB exited; restarting it');
    // A crash loop must not occupy the processor, but a single crash is repaired at once.
    pauseMs = Date.now() - startedAt < shortRunMs ? longer(supervision, pauseMs) : 0;
    const failure = await startAgain(supervision, pauseMs);
    if (failure) return failure;
  }
}

async function startAgain(supervision: Supervision, firstWaitMs: number): Promise<string | null> {
  let failure = '';
  let pauseMs = firstWaitMs;
  for (let failures = 0; failures < supervision.patience.failedStarts; ) {
    await sleep(pauseMs, null, { signal: supervision.stopping }).catch(() => {});
    if (supervision.stopping.aborted) return 'stopped';
    const disk = watchDisk(supervision);
    try {
      const { processId } = await startReady(supervision.settings, (instance) => {
        supervision.current = instance;
      });
      supervision.log.info({ processId }, 'MongoDB restarted');
      return null;
    } catch (error) {
      failure = (error as Error).message;
      if (!(await disk.wasFull())) {
        failures += 1;
        supervision.log.warn({ reason: failure }, 'MongoDB did not start');
      }
    } finally {
      disk.stop();
    }
    pauseMs = longer(supervision, pauseMs);
  }
  return failure;
}

/** Whether the disk is full at any time from now on: a mongod without space either exits, or runs and does not become writable. */
function watchDisk(supervision: Supervision): { wasFull(): Promise<boolean>; stop(): void } {
  let isSeenFull = false;
  const look = async (): Promise<boolean> => {
    isSeenFull = (await reportFullDisk(supervision)) || isSeenFull;
    return isSeenFull;
  };
  const first = look();
  const timer = setInterval(look, fullDiskCheckMs);
  return {
    // There may be space again by the time when the start has failed.
    wasFull: async () => (await first) || look(),
    stop: () => clearInterval(timer),
  };
}

/** Returns whether the disk is full, and logs it at most once a minute. */
async function reportFullDisk(supervision: Supervision): Promise<boolean> {
  const advice = await describeFullDisk(supervision.settings.folder);
  if (advice !== null && Date.now() - supervision.fullDiskReportedAt >= fullDiskReportMs) {
    supervision.fullDiskReportedAt = Date.now();
    supervision.log.warn({}, advice);
  }
  return advice !== null;
}

function longer({ patience }: Supervision, pauseMs: number): number {
  return Math.min(patience.longestPauseMs, pauseMs * 2 + firstPauseMs);
}

async function endInstance({ child, ended }: Instance): Promise<void> {
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs);
  await ended;
  clearTimeout(timer);
}
