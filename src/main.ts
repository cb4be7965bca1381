/** One process: reads the configuration, starts the service, says so, waits for a signal, stops. */
import { resolve } from 'node:path';
import { config as loadEnvFile } from 'dotenv';
import { type Config, readConfig } from './config.js';
import { type Service, startService } from './service.js';

async function main(): Promise<void> {
  loadEnvFile({ quiet: true });
  const config = readConfig(process.env);
  const stopping = signalled();
  const service = await startService(config);
  tell(service, config);
  const failure = await Promise.race([stopping, service.failed]);
  await service.stop();
  if (failure !== null) throw new Error(failure);
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

/** For a person; with a log for machines on standard output, on the other channel. */
function tell({ url, generatedPassword }: Service, config: Config): void {
  const lines = [
    '',
    `  Vigil is running at ${url}`,
    `  API                 ${url}/api/v1`,
    `  Administrator       ${config.admin.login}`,
    ...(generatedPassword === null ? [] : [`  Password            ${generatedPassword}   (shown this once: keep it)`]),
    `  Data                ${config.mongodbUri === null ? resolve(config.dataFolder) : 'the MongoDB of MONGODB_URI'}`,
    '  Stop with Ctrl-C',
    '',
  ];
  const out = config.log.format === 'json' ? process.stderr : process.stdout;
  out.write(`${lines.join('\n')}\n`);
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`\n${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  },
);
