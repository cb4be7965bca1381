/** The process: reads the configuration, starts the service, prints its addresses, waits for a signal, stops. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { resolve } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { config as loadEnvFile } from 'dotenv';
import { type Service, startService } from './app.js';
import { type Config, parseConfig, withFiles } from './config.js';

/**
 * By how much the heap grows before the next full collection. V8 also counts memory outside the heap, so that long pages would
 * cause a full collection every 140 ms. A V8 without this option prints a warning and continues.
 */
const HEAP_GROWTH_PERCENT = 50;

async function main(): Promise<void> {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`);
  loadEnvFile({ quiet: true });
  const config = parseConfig(withFiles(process.env));
  const stopping = signalled();
  const service = await start(config);
  const failure = await Promise.race([stopping, service.failed]);
  await service.stop();
  if (failure !== null) throw new Error(explain(failure, config), { cause: failure });
  outputOf(config).write('  Stopped\n');
}

/** Starts the service and prints its addresses, or throws an error that a person can act on. */
async function start(config: Config): Promise<Service> {
  let password: string | null = null;
  let isStarted = false;
  const onPassword = (generated: string): void => {
    password = generated;
    // The database became available after the start.
    if (isStarted) outputOf(config).write(`${passwordLine(generated)}\n`);
  };
  try {
    for (const { address } of listeners(config)) await tryAddress(address);
    const service = await startService(config, { onPassword });
    printAddresses(service, config);
    isStarted = true;
    return service;
  } catch (error) {
    const passwordNote = password === null ? '' : `\n${passwordLine(password)}`;
    throw new Error(`${explain(error, config)}${passwordNote}`, { cause: error });
  }
}

interface Address {
  readonly port: number;
  readonly host: string;
}

/** The addresses of the service, and the variables that set them. */
function listeners({ http, mqtt, ops }: Config): { address: Address; port: string; host: string }[] {
  return [
    { address: http, port: 'PORT', host: 'HOST' },
    ...(mqtt === null ? [] : [{ address: mqtt, port: 'MQTT_PORT', host: 'MQTT_HOST' }]),
    ...(ops === null ? [] : [{ address: ops, port: 'OPS_PORT', host: 'OPS_HOST' }]),
  ];
}

/** Checks that the address is free before a database is started and a first password is generated. */
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
  if (!(cause instanceof Error)) return message;
  // The driver's message is more useful here than the message for clients.
  if (config.mongodbUri === null) return `The embedded database cannot be used: ${cause.message}`;
  return `The MongoDB of MONGODB_URI cannot be used: ${cause.message}`;
}

function explainAddress({ code, message }: NodeJS.ErrnoException, wanted: Address, config: Config): string {
  const names = listeners(config).find(({ address }) => address.port === wanted.port) ?? { port: 'PORT', host: 'HOST' };
  if (code === 'EADDRINUSE')
    return `Port ${wanted.port} of ${wanted.host} is taken, perhaps by another Vigil: set ${names.port} to a free one`;
  if (code === 'EACCES') return `Port ${wanted.port} is for privileged programs: set ${names.port} above 1023`;
  return `${names.host}: this machine has no address ${wanted.host} (${message})`;
}

/** Resolves with null at the first signal; the second one ends the process at once. */
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

/** Prints the addresses for a person; on standard error when the log on standard output is for machines. */
function printAddresses({ url, mqttUrl, opsUrl, isWaiting, generatedPassword }: Service, config: Config): void {
  const lines = [
    '',
    isWaiting ? `  Vigil waits for its database at ${url}: until then it answers 503` : `  Vigil is running at ${url}`,
    `  Console             ${url}   (open it in a browser)`,
    `  API                 ${url}/api/v1`,
    ...(mqttUrl === null ? [] : [`  Devices             ${mqttUrl}`]),
    ...(opsUrl === null ? [] : [`  Health, metrics     ${opsUrl}/health, /ready, /metrics`]),
    `  Administrator       ${config.admin.login}`,
    ...(generatedPassword === null ? [] : [passwordLine(generatedPassword)]),
    `  Data                ${config.mongodbUri === null ? resolve(config.dataFolder) : 'the MongoDB of MONGODB_URI'}`,
    '  Stop with Ctrl-C',
    '',
  ];
  outputOf(config).write(`${lines.join('\n')}\n`);
}

const outputOf = ({ log }: Config): NodeJS.WriteStream => (log.format === 'json' ? process.stderr : process.stdout);

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`\n${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  },
);
