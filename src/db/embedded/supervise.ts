/** Keeps mongod running: starts it again, at the same address, when it dies, until it is told to stop. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServerLog } from './binary.js';
import { bringUp, type Instance, type InstanceSettings, rotateLog, startInstance } from './instance.js';

/** A mongod that is looked after. */
export type Supervised = {
  /** Resolves, with the reason, when mongod is gone for good: stopped, or not to be started again. */
  whenExited: Promise<string>;
  stop(): Promise<void>;
};

/** How long a mongod that does not start is tried again. */
export type Patience = { failedStarts: number; longestPauseMs: number };

type Watch = {
  current: Instance;
  settings: InstanceSettings;
  log: ServerLog;
  patience: Patience;
  stopping: AbortSignal;
};

const stopTimeoutMs = 10_000;
const defaultPatience: Patience = { failedStarts: 10, longestPauseMs: 5_000 };
const firstPauseMs = 100;
const shortRunMs = 2_000;
const logCheckMs = 3_600_000;

/** Starts mongod and waits until it can be written to; `seen` is told of it before that. */
export async function startReady(settings: InstanceSettings, seen?: (instance: Instance) => void): Promise<Instance> {
  const instance = startInstance(settings);
  seen?.(instance);
  try {
    await bringUp(instance, settings);
    return instance;
  } catch (error) {
    instance.child.kill('SIGKILL');
    await instance.ended;
    throw error;
  }
}

/** Looks after a mongod that is ready. */
export function supervise(
  first: Instance,
  settings: InstanceSettings,
  log: ServerLog,
  patience: Patience = defaultPatience,
): Supervised {
  const stopping = new AbortController();
  const watch: Watch = { current: first, settings, log, patience, stopping: stopping.signal };
  const endWithUs = () => watch.current.child.kill('SIGTERM');
  process.once('exit', endWithUs);
  const logTimer = setInterval(() => rotateLog(settings.folder).catch(() => {}), logCheckMs).unref();
  const whenExited = keepRunning(watch);
  let stopped: Promise<void> | null = null;
  const stop = async () => {
    stopping.abort();
    await endInstance(watch.current);
    await whenExited;
    clearInterval(logTimer);
    process.off('exit', endWithUs);
  };
  return {
    whenExited,
    stop() {
      stopped ??= stop();
      return stopped;
    },
  };
}

async function keepRunning(watch: Watch): Promise<string> {
  for (let pauseMs = 0; ; ) {
    const startedAt = Date.now();
    const why = await watch.current.ended;
    if (watch.stopping.aborted) return 'stopped';
    watch.log.warn({ why }, 'MongoDB ended; starting it again');
    // A crash loop must not fill the processor, but a single death is mended at once.
    pauseMs = Date.now() - startedAt < shortRunMs ? longer(watch, pauseMs) : 0;
    const failure = await startAgain(watch, pauseMs);
    if (failure) return failure;
  }
}

async function startAgain(watch: Watch, soonestMs: number): Promise<string | null> {
  let failure = '';
  let pauseMs = soonestMs;
  for (let failures = 0; failures < watch.patience.failedStarts; failures += 1) {
    await sleep(pauseMs, null, { signal: watch.stopping }).catch(() => {});
    if (watch.stopping.aborted) return 'stopped';
    try {
      const { processId } = await startReady(watch.settings, (instance) => {
        watch.current = instance;
      });
      watch.log.info({ processId }, 'MongoDB runs again');
      return null;
    } catch (error) {
      failure = (error as Error).message;
      watch.log.warn({ why: failure }, 'MongoDB did not start');
    }
    pauseMs = longer(watch, pauseMs);
  }
  return failure;
}

function longer({ patience }: Watch, pauseMs: number): number {
  return Math.min(patience.longestPauseMs, pauseMs * 2 + firstPauseMs);
}

async function endInstance({ child, ended }: Instance): Promise<void> {
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs);
  await ended;
  clearTimeout(timer);
}
