/** An instance of the service as a process of its own that a test can kill, freeze and start again at the same address. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LIMITS } from '../../src/core/limits.js';
import { keepOnFailure } from './failure-logs.js';
import { ADMIN } from './fixture.js';
import { freezeProcess } from './freeze.js';
import { findFreePort } from './ports.js';
import { serviceWith } from './program.js';
import { until } from './until.js';

export interface Instance {
  readonly url: string;
  /** The address for devices, if the instance was started with `mqtt`; the same after a new start. */
  readonly mqttUrl: string;
  /** Ends it at once. */
  kill(): Promise<void>;
  /** Stops it, as on a machine that was put to sleep. */
  freeze(): Promise<void>;
  thaw(): void;
  /** Starts it again, with the same limits if none are given, and returns when it answers. */
  start(limits?: InstanceOptions['limits']): Promise<void>;
  /** Its log since the first start, one line per entry. */
  log(): Promise<string>;
  stop(): Promise<void>;
}

export interface InstanceOptions {
  readonly mqtt?: boolean;
  /** Variables of the environment in addition to those of every instance. */
  readonly env?: Readonly<Record<string, string>>;
  /** Limits that differ from the usual ones. */
  readonly limits?: Partial<Record<keyof typeof LIMITS, number>>;
}

/** Starts the service on a database and returns when it answers. */
export async function startInstance(
  mongodbUri: string,
  { mqtt = false, env: given = {}, limits = {} }: InstanceOptions = {},
): Promise<Instance> {
  const folder = await mkdtemp(join(tmpdir(), 'vigil-instance-'));
  const port = await findFreePort();
  const mqttPort = await findFreePort();
  const url = `http://127.0.0.1:${port}`;
  const logFile = join(folder, 'log');
  const env = {
    ...process.env,
    PORT: String(port),
    MONGODB_URI: mongodbUri,
    DATA_DIR: folder,
    MQTT_PORT: mqtt ? String(mqttPort) : '',
    SECRET: 'test-secret-0123456789-abcdefghijklmnop',
    LOG_FORMAT: 'json',
    LOG_LEVEL: 'warn',
    // On a busy machine the process is late without being overloaded.
    OVERLOAD_DELAY: '0',
    ADMIN_LOGIN: ADMIN.login,
    ADMIN_PASSWORD: ADMIN.password,
    ...given,
  };
  let child: ChildProcess;
  const isUp = () => child.exitCode === null && child.signalCode === null;
  const end = async (signal: NodeJS.Signals) => {
    if (!isUp()) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    // A frozen process would never end.
    child.kill('SIGCONT');
    await exited;
  };
  const log = () => readFile(logFile, 'utf8');
  keepOnFailure(`instance-${port}`, log);
  const instance: Instance = {
    url,
    mqttUrl: `mqtt://127.0.0.1:${mqttPort}`,
    log,
    kill: () => end('SIGKILL'),
    freeze: () => freezeProcess(Number(child.pid)),
    thaw: () => void child.kill('SIGCONT'),
    async start(given = limits) {
      const out = openSync(logFile, 'a');
      child = spawn(process.execPath, serviceWith('test/support/set-limits.mjs'), {
        env: { ...env, TEST_LIMITS: JSON.stringify(given) },
        stdio: ['ignore', out, out],
      });
      closeSync(out);
      const isAnswering = () =>
        fetch(url).then(
          ({ ok }) => ok,
          () => false,
        );
      await until(async () => !isUp() || (await isAnswering()), 'an instance to answer', 60_000, 20);
      if (!isUp()) throw new Error(`the service ended: ${(await log()).slice(-2_000)}`);
    },
    async stop() {
      await end('SIGTERM');
      await rm(folder, { recursive: true, force: true, maxRetries: 10 });
    },
  };
  await instance.start();
  return instance;
}
