/** A mongod of a test's own that the test can kill, freeze and start again with its data: the program of the embedded database. */
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { type Document, MongoClient } from 'mongodb';
import { MongoMemoryServer } from 'mongodb-memory-server-core';
import { defaultCacheFolder } from '../../src/config.js';
import { libraryEnvironment } from '../../src/platform/mongo/embedded/binary.js';
import { findMongod } from '../../src/platform/mongo/embedded/mongod.js';
import { freezeProcess } from './freeze.js';
import { findFreePort } from './ports.js';

const LAUNCH_MS = 60_000;
/** A server that hangs, and one that only waits for a core of a busy machine, cannot be told apart sooner. */
const ANSWER_MS = 60_000;
const PROBE_MS = 2_000;

export interface LocalMongod {
  readonly port: number;
  readonly isUp: () => boolean;
  /** Starts it again with its data and its port; returns when it accepts connections. */
  start(): Promise<void>;
  /** Ends it at once, as a machine that fails does. */
  kill(): Promise<void>;
  /** It keeps its connections and answers nothing, as a machine that hangs does. */
  freeze(): Promise<void>;
  thaw(): void;
  /** Runs an administrative command on it. */
  command(command: Document): Promise<Document>;
  /** The same, but gives up soon, for who asks again. */
  probe(command: Document): Promise<Document>;
}

/** The options of mongodb-memory-server for the mongod of the embedded database. */
export async function findProgram() {
  const { file, libraryFolder } = await findMongod({
    binary: process.env.MONGOD_BINARY || null,
    searchPath: process.env.PATH ?? '',
    cacheFolder: defaultCacheFolder(process.env, homedir(), process.platform),
    log: { info: () => undefined, warn: () => undefined },
  });
  return { binary: { systemBinary: file }, spawn: libraryEnvironment(libraryFolder) };
}

/** Options of every mongod of tests. */
export const MONGOD_ARGS: readonly string[] = [
  '--nounixsocket',
  '--quiet',
  '--noscripting',
  '--wiredTigerCacheSizeGB',
  '0.25',
  '--setParameter',
  'diagnosticDataCollectionEnabled=false',
];

/** The port and the time limit of a mongod that starts. */
export const createInstanceOptions = async () => ({ port: await findFreePort(), launchTimeout: LAUNCH_MS });

/** Starts a mongod with its data in the folder; returns when it accepts connections. */
export async function startLocalMongod(folder: string, args: readonly string[] = []): Promise<LocalMongod> {
  await mkdir(folder, { recursive: true });
  const { binary, spawn } = await findProgram();
  const options = await createInstanceOptions();
  const server = await MongoMemoryServer.create({
    binary,
    spawn,
    instance: { ...options, dbPath: folder, storageEngine: 'wiredTiger', args: [...MONGOD_ARGS, ...args] },
  });
  return controlMongod(server);
}

/** Gives a test control of a running server. */
export function controlMongod(server: MongoMemoryServer): LocalMongod {
  const { port } = server.instanceInfo as { port: number };
  const processOf = () => server.instanceInfo?.instance.mongodProcess;
  return {
    port,
    isUp: () => processOf()?.exitCode === null && processOf()?.signalCode === null,
    start: () => server.start(true),
    async kill() {
      const child = processOf();
      if (child?.exitCode === null && child.signalCode === null) {
        const exited = once(child, 'exit');
        child.kill('SIGKILL');
        await exited;
      }
      await server.stop({ doCleanup: false });
    },
    freeze: () => freezeProcess(Number(processOf()?.pid)),
    thaw: () => void processOf()?.kill('SIGCONT'),
    command: (command) => runOn(port, command),
    probe: (command) => runOn(port, command, PROBE_MS),
  };
}

/** Runs an administrative command on the server at this port. */
export async function runOn(port: number, command: Document, answerMs = ANSWER_MS): Promise<Document> {
  const client = new MongoClient(`mongodb://127.0.0.1:${port}/?directConnection=true`, {
    serverSelectionTimeoutMS: answerMs,
    connectTimeoutMS: answerMs,
    socketTimeoutMS: 2 * answerMs,
    heartbeatFrequencyMS: 500,
    maxPoolSize: 1,
  });
  try {
    return await client.db('admin').command(command);
  } finally {
    await client.close();
  }
}
