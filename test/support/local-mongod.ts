/** A mongod of this machine for tests that need one of their own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { type Document, MongoClient } from 'mongodb';
import { defaultCacheFolder } from '../../src/config.js';
import { libraryEnvironment } from '../../src/db/embedded/binary.js';
import { findMongod } from '../../src/db/embedded/mongod.js';
import { freezeProcess } from './freeze.js';
import { findFreePort } from './ports.js';
import { until } from './until.js';

const READY_MS = 60_000;
const ANSWER_MS = 2_000;
/** Another program took the port after it was found free: mongod's exit code for what it cannot listen on. */
const PORT_TAKEN = 48;

export interface LocalMongod {
  readonly port: number;
  readonly isUp: () => boolean;
  /** Starts it again with its data. */
  start(): void;
  /** Ends it at once, as a failing machine does. */
  kill(): Promise<void>;
  /** It holds its connections and answers nothing, as a machine that hangs does. */
  freeze(): Promise<void>;
  thaw(): void;
  /** Runs a command of administrators on it. */
  command(command: Document): Promise<Document>;
}

/** Starts it with its data and its log in the folder; returns when it answers. */
export async function startLocalMongod(folder: string, args: readonly string[] = []): Promise<LocalMongod> {
  const program = await findMongod({
    ...{ binary: process.env.MONGOD_BINARY || null, searchPath: process.env.PATH ?? '' },
    cacheFolder: defaultCacheFolder(process.env, homedir(), process.platform),
    log: { info: () => undefined, warn: () => undefined },
  });
  await mkdir(folder, { recursive: true });
  const logFile = join(folder, 'mongod.log');
  for (;;) {
    const port = await findFreePort();
    const child = createLocalMongod(port, () =>
      spawn(
        program.file,
        [
          ...[
            '--dbpath',
            folder,
            '--logpath',
            logFile,
            '--logappend',
            '--bind_ip',
            '127.0.0.1',
            '--port',
            String(port),
          ],
          ...['--nounixsocket', '--quiet', '--noscripting', '--wiredTigerCacheSizeGB', '0.25'],
          ...['--setParameter', 'diagnosticDataCollectionEnabled=false', ...args],
        ],
        { stdio: 'ignore', ...libraryEnvironment(program.libraryFolder) },
      ),
    );
    const answers = async () => !child.isUp() || (await child.command({ ping: 1 }).catch(() => null));
    await until(answers, `mongod on port ${port} to answer`, READY_MS, 50).catch(async (error) => {
      await child.kill();
      throw error;
    });
    if (child.isUp()) return child;
    if (child.exitCode() !== PORT_TAKEN)
      throw new Error(`mongod ended: ${(await readFile(logFile, 'utf8')).slice(-2_000)}`);
  }
}

function createLocalMongod(port: number, run: () => ChildProcess): LocalMongod & { exitCode: () => number | null } {
  let child = run();
  const isUp = () => child.exitCode === null && child.signalCode === null;
  return {
    ...{ port, isUp, exitCode: () => child.exitCode },
    start() {
      child = run();
    },
    async kill() {
      if (!isUp()) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
    freeze: () => freezeProcess(Number(child.pid)),
    thaw: () => void child.kill('SIGCONT'),
    command: (command) => runOn(port, command),
  };
}

/** Runs a command of administrators on the server at this port. */
export async function runOn(port: number, command: Document): Promise<Document> {
  const client = new MongoClient(`mongodb://127.0.0.1:${port}/?directConnection=true`, {
    ...{ serverSelectionTimeoutMS: ANSWER_MS, connectTimeoutMS: ANSWER_MS, socketTimeoutMS: 10 * ANSWER_MS },
    ...{ heartbeatFrequencyMS: 500, maxPoolSize: 1 },
  });
  try {
    return await client.db('admin').command(command);
  } finally {
    await client.close();
  }
}
