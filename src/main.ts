/** One process: reads the configuration, starts the service, says so, waits for a signal, stops. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { resolve } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { config as loadEnvFile } from 'dotenv';
import { type Config, readConfig, withFiles } from './config.js';
import { type Service, startService } from './service.js';

/**
 * By how much the heap grows before all of it is looked through again. V8 counts what lies outside of it as well, so that
 * long pages would have it looked through every seventh of a second. A V8 without this setting says so and goes on.
 */
const HEAP_GROWTH_PERCENT = 50;

async function main(): Promise<void> {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`);
  loadEnvFile({ quiet: true });
  const config = readConfig(withFiles(process.env));
  const stopping = signalled();
  const service = await start(config);
  const failure = await Promise.race([stopping, service.failed]);
  await service.stop();
  if (failure !== null) throw new Error(explain(failure, config), { cause: failure });
  speakTo(config).write('  Stopped\n');
}

/** Starts the service and says so, or throws what a person can do something about. */
async function start(config: Config): Promise<Service> {
  let password: string | null = null;
  let told = false;
  const onPassword = (made: string): void => {
    password = made;
    // A database that came late.
    if (told) speakTo(config).write(`${passwordLine(made)}\n`);
  };
  try {
    for (const { at } of listeners(config)) await tryAddress(at);
    const service = await startService(config, { onPassword });
    tell(service, config);
    told = true;
    return service;
  } catch (error) {
    const kept = password === null ? '' : `\n${passwordLine(password)}`;
    throw new Error(`${explain(error, config)}${kept}`, { cause: error });
  }
}

interface Address {
  readonly port: number;
  readonly host: string;
}

/** Where the service listens, and the variables that say so. */
function listeners({ http, mqtt, ops }: Config): { at: Address; port: string; host: string }[] {
  return [
    { at: http, port: 'PORT', host: 'HOST' },
    ...(mqtt === null ? [] : [{ at: mqtt, port: 'MQTT_PORT', host: 'MQTT_HOST' }]),
    ...(ops === null ? [] : [{ at: ops, port: 'OPS_PORT', host: 'OPS_HOST' }]),
  ];
}

/** Whether the address can be had shows before a database is started and a first password is made. */
async function tryAddress({ port, host }: Address): Promise<void> {
  const trial = createServer().listen({ port, host, exclusive: true });
  await once(trial, 'listening').catch((error: Error) => {
    throw Object.assign(error, { wanted: { port, host } });
  });
  trial.close();
  await once(trial, 'close');
}

const UNWRITABLE: ReadonlySet<unknown> = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'EEXIST', 'ENOTDIR', 'ENOENT']);

function explain(error: unknown, config: Config): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause, code, wanted } = error as NodeJS.ErrnoException & { wanted?: Address };
  if (wanted !== undefined) return explainAddress(error, wanted, config);
  if (UNWRITABLE.has(code)) return `The data folder ${resolve(config.dataFolder)} cannot be written to: ${message}`;
  // What the driver said is of more use than what a client of the service would be told.
  const database = config.mongodbUri === null ? 'The database' : 'The MongoDB of MONGODB_URI';
  return cause instanceof Error ? `${database} cannot be used: ${cause.message}` : message;
}

function explainAddress({ code, message }: NodeJS.ErrnoException, wanted: Address, config: Config): string {
  const names = listeners(config).find(({ at }) => at.port === wanted.port) ?? { port: 'PORT', host: 'HOST' };
  if (code === 'EADDRINUSE')
    return `Port ${wanted.port} of ${wanted.host} is taken, perhaps by another Vigil: set ${names.port} to a free one`;
  if (code === 'EACCES') return `Port ${wanted.port} is for privileged programs: set ${names.port} above 1023`;
  return `${names.host}: this machine has no address ${wanted.host} (${message})`;
}

/** Resolves with null at the first signal to stop; the second ends the process at once. */
function signalled(): Promise<null> {
  return new Promise((done) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => {
        done(null);
        process.once(signal, () => process.exit(1));
      });
    }
  });
}

const passwordLine = (password: string): string => `  Password            ${password}   (shown this once: keep it)`;

/** For a person; with a log for machines on standard output, on the other channel. */
function tell({ url, mqttUrl, opsUrl, isWaiting, generatedPassword }: Service, config: Config): void {
  const lines = [
    '',
    isWaiting ? `  Vigil waits for its database at ${url}: until then it answers 503` : `  Vigil is running at ${url}`,
    `  API                 ${url}/api/v1`,
    ...(mqttUrl === null ? [] : [`  Devices             ${mqttUrl}`]),
    ...(opsUrl === null ? [] : [`  Health, metrics     ${opsUrl}/health, /ready, /metrics`]),
    `  Administrator       ${config.admin.login}`,
    ...(generatedPassword === null ? [] : [passwordLine(generatedPassword)]),
    `  Data                ${config.mongodbUri === null ? resolve(config.dataFolder) : 'the MongoDB of MONGODB_URI'}`,
    '  Stop with Ctrl-C',
    '',
  ];
  speakTo(config).write(`${lines.join('\n')}\n`);
}

const speakTo = ({ log }: Config): NodeJS.WriteStream => (log.format === 'json' ? process.stderr : process.stdout);

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`\n${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  },
);
