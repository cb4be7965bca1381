/** An instance of the service as a process of its own, that can be killed and started again at the same address. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keepOnFailure } from './failure-logs.js';
import { ADMIN } from './fixture.js';
import { freezeProcess } from './freeze.js';
import { findFreePort } from './ports.js';
import { SERVICE } from './program.js';
import { until } from './until.js';

const START_MS = 30_000;

export interface Instance {
  readonly url: string;
  /** Where devices connect; the same after a new start. Nobody listens there unless it was asked for. */
  readonly mqttUrl: string;
  /** Ends it at once, in the middle of whatever it does. */
  kill(): Promise<void>;
  /** It does nothing for a while, as on a machine that was put to sleep. */
  freeze(): Promise<void>;
  thaw(): void;
  /** Starts it again and returns when it answers. */
  start(): Promise<void>;
  /** What it wrote to its log, one line per entry, since the first start. */
  log(): Promise<string>;
  stop(): Promise<void>;
}

export interface InstanceOptions {
  readonly mqtt?: boolean;
  /** Variables of the environment beside those that every instance has. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts the service on a database of somebody's, with or without MQTT, and returns when it answers. */
export async function startInstance(
  mongodbUri: string,
  { mqtt = false, env: given = {} }: InstanceOptions = {},
): Promise<Instance> {
  const folder = await mkdtemp(join(tmpdir(), 'vigil-instance-'));
  const [port, mqttPort] = [await findFreePort(), await findFreePort()];
  const url = `http://127.0.0.1:${port}`;
  const logFile = join(folder, 'log');
  const env = {
    ...{ ...process.env, PORT: String(port), MONGODB_URI: mongodbUri, DATA_DIR: folder },
    MQTT_PORT: mqtt ? String(mqttPort) : '',
    ...{ SECRET: 'test-secret-0123456789-abcdefghijklmnop', LOG_FORMAT: 'json', LOG_LEVEL: 'warn' },
    ...{ ADMIN_LOGIN: ADMIN.login, ADMIN_PASSWORD: ADMIN.password, ...given },
  };
  let child: ChildProcess;
  const isUp = () => child.exitCode === null && child.signalCode === null;
  const end = async (signal: NodeJS.Signals) => {
    if (!isUp()) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    // One that a test left frozen would never end.
    child.kill('SIGCONT');
    await exited;
  };
  const log = () => readFile(logFile, 'utf8');
  keepOnFailure(`instance-${port}`, log);
  const instance: Instance = {
    ...{ url, mqttUrl: `mqtt://127.0.0.1:${mqttPort}`, log },
    kill: () => end('SIGKILL'),
    freeze: () => freezeProcess(Number(child.pid)),
    thaw: () => void child.kill('SIGCONT'),
    async start() {
      const out = openSync(logFile, 'a');
      child = spawn(process.execPath, SERVICE, { env, stdio: ['ignore', out, out] });
      closeSync(out);
      const isAnswering = () =>
        fetch(url).then(
          ({ ok }) => ok,
          () => false,
        );
      await until(async () => !isUp() || (await isAnswering()), 'an instance to answer', START_MS, 20);
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
