/** One run of mongod: starts it, rotates its log, and waits until it is a writable primary. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { copyFile, readFile, stat, truncate } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Db, MongoClient, MongoNetworkError, MongoServerError, MongoServerSelectionError } from 'mongodb';
import { libraryEnvironment, type Mongod } from './binary.js';
import { neededToRunMib } from './disk.js';

export type InstanceSettings = {
  mongod: Mongod;
  /** Our folder inside the data folder. */
  folder: string;
  port: number;
  key: string;
  cacheSizeMb: number;
};

/** A running mongod; `ended` resolves with the reason when it exits. */
export type Instance = { child: ChildProcess; processId: number; ended: Promise<string> };

const replicaSet = 'vigil';
const oplogMb = 2_048;
const slowQueryMs = 1_000;
// Files of this release are readable by every later one: an operator may install an older 8 than the fetched one.
const compatibleVersion = '8.0';
const startTimeoutMs = 600_000;
const pollMs = 10;
const selectionTimeoutMs = 5_000;
const largestLogBytes = 32 * 1024 * 1024;
// AlreadyInitialized (while its set is loading), NotYetInitialized, PrimarySteppedDown, NotWritablePrimary,
// InterruptedAtShutdown, InterruptedDueToReplStateChange, NotPrimaryNoSecondaryOk, NotPrimaryOrSecondary.
const transientCodes = new Set([23, 94, 189, 10107, 11600, 11602, 13435, 13436]);
const endOfLogBytes = 64 * 1024;

/** The paths inside our folder. */
export function pathsOf(folder: string) {
  return {
    data: join(folder, 'data'),
    key: join(folder, 'key'),
    port: join(folder, 'port'),
    log: join(folder, 'mongod.log'),
  };
}

/** The URI for clients. `__system` is MongoDB's internal user, whose password is the key file. */
export function uriOf(key: string, port: number): string {
  return `mongodb://__system:${key}@127.0.0.1:${port}/vigil?directConnection=true&authSource=local&authMechanism=SCRAM-SHA-256`;
}

/** Starts mongod without waiting until it is ready. */
export function startInstance(settings: InstanceSettings): Instance {
  const { mongod, folder } = settings;
  const log = openSync(pathsOf(folder).log, 'a', 0o600);
  // Detached: Ctrl-C in a terminal must reach only the service, which then stops mongod in order.
  const options = { detached: true, windowsHide: true, cwd: folder, ...libraryEnvironment(mongod.libraryFolder) };
  const child = spawn(mongod.file, argumentsOf(settings), { ...options, stdio: ['ignore', log, log] });
  closeSync(log);
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', async (code, signal) => {
      const message = await readEndOfLog(folder).catch(() => '');
      resolve(`mongod exited (${signal ?? `exit code ${code}`})${message && !signal ? `: ${message}` : ''}`);
    });
  });
  return { child, processId: child.pid ?? 0, ended };
}

function argumentsOf({ folder, port, cacheSizeMb }: InstanceSettings): string[] {
  const paths = pathsOf(folder);
  return [
    '--dbpath',
    paths.data,
    '--keyFile',
    paths.key,
    '--replSet',
    replicaSet,
    '--bind_ip',
    '127.0.0.1',
    '--port',
    String(port),
    // CVE-2025-14847: mongod before 8.0.17 and 8.2.3 leaks memory through zlib messages.
    '--networkMessageCompressors',
    'disabled',
    '--wiredTigerCacheSizeGB',
    String(cacheSizeMb / 1024),
    '--oplogSize',
    String(oplogMb),
    '--setParameter',
    'diagnosticDataCollectionEnabled=false',
    // Without users, mongod would let anyone on this machine create one, and would look for users at every command.
    '--setParameter',
    'enableLocalhostAuthBypass=false',
    // By default, mongod builds no index where less than 500 MiB are free, not even for a new collection with one document.
    '--setParameter',
    `indexBuildMinAvailableDiskSpaceMB=${neededToRunMib}`,
    '--quiet',
    '--noscripting',
    '--slowms',
    String(slowQueryMs),
    ...(process.platform === 'win32' ? [] : ['--nounixsocket']),
  ];
}

/** Waits until the instance is a writable primary. Sets up its single-member replica set when it is new or its port changed. */
export async function bringUp({ ended }: Instance, { key, port }: InstanceSettings): Promise<void> {
  const client = new MongoClient(uriOf(key, port), { serverSelectionTimeoutMS: selectionTimeoutMs, maxPoolSize: 1 });
  const admin = client.db('admin');
  const isOver = new AbortController();
  const steps = async () => {
    let isNew = false;
    const noteNew = () => {
      isNew = true;
    };
    await until(() => isListening(port), isOver.signal);
    // By itself, a client whose first command finds no server never connects again.
    await until(() => client.connect().then(() => true), isOver.signal);
    await until(() => setUpReplicaSet(admin, port, noteNew), isOver.signal);
    await until(async () => (await admin.command({ hello: 1 })).isWritablePrimary, isOver.signal);
    await until(() => keepFilesReadable(admin, isNew), isOver.signal);
  };
  const failed = ended.then((reason) => {
    throw new Error(reason);
  });
  try {
    await Promise.race([steps(), failed]);
  } finally {
    isOver.abort();
    await client.close();
  }
}

async function setUpReplicaSet(admin: Db, port: number, noteNew: () => void): Promise<true> {
  const member = { _id: 0, host: `127.0.0.1:${port}` };
  const found = await admin.command({ replSetGetConfig: 1 }).catch((error: { codeName?: string }) => {
    if (error.codeName === 'NotYetInitialized') return null;
    throw error;
  });
  if (!found) {
    await admin.command({ replSetInitiate: { _id: replicaSet, members: [member] } });
    noteNew();
  } else if (found.config.members[0].host !== member.host) {
    // After a change of port the member does not find itself in its set, and needs a forced reconfiguration.
    const { config } = found;
    const members = [{ ...config.members[0], ...member }];
    await admin.command({ replSetReconfig: { ...config, version: config.version + 1, members }, force: true });
  }
  return true;
}

/** Sets the format of new files and finishes an interrupted change of format. Keeps a format that an operator chose. */
async function keepFilesReadable(admin: Db, isNew: boolean): Promise<true> {
  const { featureCompatibilityVersion: format } = await admin.command({
    getParameter: 1,
    featureCompatibilityVersion: 1,
  });
  const wanted = format.targetVersion ?? (isNew && format.version !== compatibleVersion ? compatibleVersion : null);
  if (!wanted) return true;
  await admin.command({ setFeatureCompatibilityVersion: wanted, confirm: true }).catch((error: unknown) => {
    // A future MongoDB may refuse this old format; then its own format stays.
    if (isTransient(error)) throw error;
  });
  return true;
}

async function until(isTrue: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
  const deadline = Date.now() + startTimeoutMs;
  while (!signal.aborted && !(await isTrue().catch(refusePermanent))) {
    if (Date.now() > deadline) throw new Error(`mongod is not ready after ${startTimeoutMs / 1000} s`);
    await sleep(pollMs);
  }
}

/** A member that changes its state closes connections and interrupts operations: a retry succeeds. */
function isTransient(error: unknown): boolean {
  if (error instanceof MongoNetworkError || error instanceof MongoServerSelectionError) return true;
  return error instanceof MongoServerError && transientCodes.has(Number(error.code));
}

function refusePermanent(error: unknown): boolean {
  if (!isTransient(error)) throw error;
  return false;
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('close', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

/** Whether the port is free on this machine. */
export function isFreePort(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/** Bounds the log: beyond the limit it becomes the only old log, and a new one begins. */
export async function rotateLog(folder: string, limitBytes = largestLogBytes): Promise<void> {
  const { log } = pathsOf(folder);
  const size = await stat(log).then(
    (found) => found.size,
    () => 0,
  );
  if (size <= limitBytes) return;
  // Copied and truncated instead of renamed: mongod keeps the file open and appends to it.
  await copyFile(log, `${log}.1`);
  await truncate(log);
}

async function readEndOfLog(folder: string): Promise<string> {
  const text = (await readFile(pathsOf(folder).log, 'utf8')).slice(-endOfLogBytes);
  const lines = text.split('\n').filter(Boolean);
  const errors = lines.filter((line) => /^\{.*"s":"[FE]"/.test(line) || !line.startsWith('{'));
  return (errors.length > 0 ? errors : lines)
    .slice(-3)
    .map((line) => toSentence(line))
    .join('; ');
}

function toSentence(line: string): string {
  try {
    const { msg, attr } = JSON.parse(line) as { msg: string; attr?: { error?: unknown } };
    const more = attr?.error ?? attr;
    return (more === undefined ? msg : `${msg}: ${typeof more === 'string' ? more : JSON.stringify(more)}`).slice(
      0,
      400,
    );
  } catch {
    return line.slice(0, 400);
  }
}
