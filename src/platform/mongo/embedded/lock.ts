/**
 * Locks a folder for one process. The lock is a listening local socket: the operating system releases it whenever its process ends,
 * and it does not depend on process ids, which containers reuse.
 */
import { createHash } from 'node:crypto';
import { mkdir, realpath, rmdir, stat, unlink } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export type FolderLock = { release(): Promise<void> };

/** The holder of a folder: `'nobody'`, or a process, with a null id if it does not answer. */
type Holder = 'nobody' | { processId: number | null };

const longestSocketPath = 100;
const answerTimeoutMs = 1_000;
const attempts = 200;
const pollMs = 20;
const guardStaleMs = 2_000;

/** Locks the folder for this process. If it is locked, returns the process id of the holder; null if that does not answer. */
export async function lockFolder(folder: string): Promise<FolderLock | { heldBy: number | null }> {
  const real = await realpath(folder);
  for (const address of addressesOf(real)) {
    const taken = await takeAddress(address);
    if (taken !== 'unsupported') return taken;
  }
  throw new Error(`Cannot lock ${folder}: neither it nor ${tmpdir()} accepts a local socket`);
}

function addressesOf(folder: string): string[] {
  const name = `vigil-${createHash('sha256').update(folder).digest('hex').slice(0, 24)}`;
  if (process.platform === 'win32') return [`\\\\.\\pipe\\${name}`];
  const inside = join(folder, 'lock');
  const outside = join(tmpdir(), `${name}.lock`);
  return Buffer.byteLength(inside) <= longestSocketPath ? [inside, outside] : [outside];
}

async function takeAddress(address: string): Promise<FolderLock | { heldBy: number | null } | 'unsupported'> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const result = await listen(address);
    if (typeof result !== 'string') return { release: () => close(result) };
    if (result === 'unsupported') return result;
    const holder = await askHolder(address);
    if (holder !== 'nobody') return { heldBy: holder.processId };
    if (!(await removeStale(address))) await sleep(pollMs);
  }
  return { heldBy: null };
}

/**
 * Deletes the socket of a dead holder, after a second check under a guard. Without the guard, the slower of two processes that find
 * the same dead socket would delete the new lock of the faster one. Returns false while another process has the guard.
 */
async function removeStale(address: string): Promise<boolean> {
  const guard = `${address}.guard`;
  try {
    await mkdir(guard);
  } catch {
    const age = Date.now() - (await stat(guard).catch(() => ({ mtimeMs: Date.now() }))).mtimeMs;
    if (age > guardStaleMs) await rmdir(guard).catch(() => {});
    return false;
  }
  try {
    if ((await askHolder(address)) === 'nobody') await unlink(address).catch(() => {});
    return true;
  } finally {
    await rmdir(guard).catch(() => {});
  }
}

function listen(address: string): Promise<Server | 'taken' | 'unsupported'> {
  return new Promise((resolve) => {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.end(`${process.pid}\n`);
    });
    server.on('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code === 'EADDRINUSE' ? 'taken' : 'unsupported'),
    );
    server.listen(address, () => resolve(server.unref()));
  });
}

function askHolder(address: string): Promise<Holder> {
  return new Promise((resolve) => {
    let answer = '';
    let connected = false;
    const socket = connect(address);
    const done = () => {
      socket.destroy();
      const processId = Number.parseInt(answer, 10);
      resolve(connected ? { processId: Number.isNaN(processId) ? null : processId } : 'nobody');
    };
    socket.setTimeout(answerTimeoutMs, done);
    socket.on('connect', () => {
      connected = true;
    });
    socket.on('data', (bytes) => {
      answer += bytes.toString();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      // A live holder with a full queue refuses with EAGAIN.
      if (error.code === 'EAGAIN' || error.code === 'EACCES') connected = true;
      done();
    });
    socket.on('close', done);
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}
