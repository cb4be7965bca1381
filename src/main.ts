/** One process: reads the configuration, starts the service, says so, waits for a signal, stops. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { resolve } from 'node:path';
import { config as loadEnvFile } from 'dotenv';
import { type Config, readConfig } from './config.js';
import { type Service, startService } from './service.js';

async function main(): Promise<void> {
  loadEnvFile({ quiet: true });
  const config = readConfig(process.env);
  const stopping = signalled();
  const service = await start(config);
  tell(service, config);
  const failure = await Promise.race([stopping, service.failed]);
  await service.stop();
  if (failure !== null) throw new Error(failure);
  speakTo(config).write('  Stopped\n');
}

/** Starts the service, or throws what a person can do something about. */
async function start(config: Config): Promise<Service> {
  let password: string | null = null;
  const onPassword = (made: string): void => {
    password = made;
  };
  try {
    await tryAddress(config.http);
    return await startService(config, { onPassword });
  } catch (error) {
    const kept = password === null ? '' : `\n${passwordLine(password)}`;
    throw new Error(`${explain(error, config)}${kept}`, { cause: error });
  }
}

/** Whether the address can be had shows before a database is started and a first password is made. */
async function tryAddress({ port, host }: Config['http']): Promise<void> {
  const trial = createServer().listen({ port, host, exclusive: true });
  await once(trial, 'listening');
  trial.close();
  await once(trial, 'close');
}

const UNWRITABLE: ReadonlySet<unknown> = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'EEXIST', 'ENOTDIR']);

function explain(error: unknown, { http: { port, host }, dataFolder }: Config): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause, code, syscall } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE')
    return `Port ${port} of ${host} is taken, perhaps by another Vigil: set PORT to a free one`;
  if (syscall === 'listen' && code === 'EACCES') return `Port ${port} is for privileged programs: set PORT above 1023`;
  if (code === 'EADDRNOTAVAIL' || syscall === 'getaddrinfo') return `HOST: this machine has no address ${host}`;
  if (UNWRITABLE.has(code)) return `The data folder ${resolve(dataFolder)} cannot be written to: ${message}`;
  // What the driver said is of more use than what a client of the service would be told.
  return cause instanceof Error ? `The database cannot be used: ${cause.message}` : message;
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
function tell({ url, generatedPassword }: Service, config: Config): void {
  const lines = [
    '',
    `  Vigil is running at ${url}`,
    `  API                 ${url}/api/v1`,
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
