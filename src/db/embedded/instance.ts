/** One run of mongod: how it is started, how its log is kept, and how it is brought to the state of a writable primary. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { copyFile, readFile, stat, truncate } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Db, MongoClient, MongoNetworkError, MongoServerError, MongoServerSelectionError } from 'mongodb';
import { libraryEnvironment, type Mongod } from './binary.js';

/** What a run needs to know. */
export type InstanceSettings = {
  mongod: Mongod;
  /** Our folder inside the data folder. */
  folder: string;
  port: number;
  key: string;
  cacheSizeMb: number;
};

/** A mongod that runs; `ended` gives the reason when it does not any more. */
export type Instance = { child: ChildProcess; processId: number; ended: Promise<string> };

const replicaSet = 'vigil';
const oplogMb = 2_048;
const slowQueryMs = 1_000;
// The oldest release of which every later one can read the files: an operator may install an older 8 than the one fetched.
const compatibleVersion = '8.0';
const startTimeoutMs = 600_000;
const pollMs = 10;
const selectionTimeoutMs = 5_000;
const largestLogBytes = 32 * 1024 * 1024;
// AlreadyInitialized (its set is still being loaded), NotYetInitialized, PrimarySteppedDown, NotWritablePrimary,
// InterruptedAtShutdown, InterruptedDueToReplStateChange, NotPrimaryNoSecondaryOk, NotPrimaryOrSecondary.
const passingCodes = new Set([23, 94, 189, 10107, 11600, 11602, 13435, 13436]);
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

/** The address for clients. The name `__system` is MongoDB's internal user, whose password is the key file. */
export function uriOf(key: string, port: number): string {
  return `mongodb://__system:${key}@127.0.0.1:${port}/vigil?directConnection=true&authSource=local&authMechanism=SCRAM-SHA-256`;
}

/** Starts mongod; it is not ready yet. */
export function startInstance(settings: InstanceSettings): Instance {
  const { mongod, folder } = settings;
  const log = openSync(pathsOf(folder).log, 'a', 0o600);
  // Detached: a terminal's Ctrl-C must reach the service alone, which then stops the two in order.
  const options = { detached: true, windowsHide: true, cwd: folder, ...libraryEnvironment(mongod.libraryFolder) };
  const child = spawn(mongod.file, argumentsOf(settings), { ...options, stdio: ['ignore', log, log] });
  closeSync(log);
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', async (code, signal) => {
      const said = await readEndOfLog(folder).catch(() => '');
      resolve(`mongod ended (${signal ?? `exit code ${code}`})${said && !signal ? `: ${said}` : ''}`);
    });
  });
  return { child, processId: child.pid ?? 0, ended };
}

function argumentsOf({ folder, port, cacheSizeMb }: InstanceSettings): string[] {
  const paths = pathsOf(folder);
  return [
    ...['--dbpath', paths.data, '--keyFile', paths.key, '--replSet', replicaSet],
    ...['--bind_ip', '127.0.0.1', '--port', String(port)],
    // CVE-2025-14847: mongod before 8.0.17 and 8.2.3 leaks memory through zlib messages.
    ...['--networkMessageCompressors', 'disabled'],
    ...['--wiredTigerCacheSizeGB', String(cacheSizeMb / 1024), '--oplogSize', String(oplogMb)],
    ...['--setParameter', 'diagnosticDataCollectionEnabled=false'],
    // While it has no users, mongod would let anyone on this machine make one; and look for users at every command.
    ...['--setParameter', 'enableLocalhostAuthBypass=false'],
    ...['--quiet', '--noscripting', '--slowms', String(slowQueryMs)],
    ...(process.platform === 'win32' ? [] : ['--nounixsocket']),
  ];
}

/** Waits until the instance is a writable primary, setting up its replica set of one when it is new or has moved. */
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
    await until(() => setUpReplicaSet(admin, port, noteNew), isOver.signal);
    await until(async () => (await admin.command({ hello: 1 })).isWritablePrimary, isOver.signal);
    await until(() => keepFilesReadable(admin, isNew), isOver.signal);
  };
  const failed = ended.then((why) => {
    throw new Error(why);
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
    // The port has changed, so the member does not find itself in its own set, and nobody but us can tell it.
    const { config } = found;
    const members = [{ ...config.members[0], ...member }];
    await admin.command({ replSetReconfig: { ...config, version: config.version + 1, members }, force: true });
  }
  return true;
}

/** Sets the format of new files, and finishes a change of format that was cut off. A format that somebody chose stays. */
async function keepFilesReadable(admin: Db, isNew: boolean): Promise<true> {
  const { featureCompatibilityVersion: format } = await admin.command({
    getParameter: 1,
    featureCompatibilityVersion: 1,
  });
  const wanted = format.targetVersion ?? (isNew && format.version !== compatibleVersion ? compatibleVersion : null);
  if (!wanted) return true;
  await admin.command({ setFeatureCompatibilityVersion: wanted, confirm: true }).catch((error: unknown) => {
    // A MongoDB to come may refuse so old a format: then its own will do.
    if (isPassing(error)) throw error;
  });
  return true;
}

async function until(isTrue: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
  const deadline = Date.now() + startTimeoutMs;
  while (!signal.aborted && !(await isTrue().catch(refuseLasting))) {
    if (Date.now() > deadline) throw new Error(`mongod is not ready after ${startTimeoutMs / 1000} s`);
    await sleep(pollMs);
  }
}

/** A member that becomes something else closes its connections and interrupts what runs: the next try finds it ready. */
function isPassing(error: unknown): boolean {
  if (error instanceof MongoNetworkError || error instanceof MongoServerSelectionError) return true;
  return error instanceof MongoServerError && passingCodes.has(Number(error.code));
}

function refuseLasting(error: unknown): boolean {
  if (!isPassing(error)) throw error;
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

/** Whether nobody listens at the port of this machine. */
export function isFreePort(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/** Keeps the log bounded: when it has grown over the limit it becomes the one old log, and begins anew. */
export async function rotateLog(folder: string, limitBytes = largestLogBytes): Promise<void> {
  const { log } = pathsOf(folder);
  const size = await stat(log).then(
    (found) => found.size,
    () => 0,
  );
  if (size <= limitBytes) return;
  // Copied and cut, not renamed: mongod holds the file open and goes on writing at its new end.
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
