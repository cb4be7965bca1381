/**
 * One process per folder. The lock is a listening local socket: the operating system takes it away when its process ends,
 * however it ends, and nothing depends on process numbers, which a container hands out again.
 */
import { createHash, randomUUID } from 'node:crypto';
import { link, realpath, rename, unlink } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder that is held; `release` gives it up. */
export type FolderLock = { release(): Promise<void> };

/** Who holds the folder: `'nobody'`, or the process that answered (null: it holds the folder but does not answer). */
type Holder = 'nobody' | { processId: number | null };

const longestSocketPath = 100;
const answerTimeoutMs = 1_000;
const attempts = 5;

/** Takes the folder for this process. Gives the process id of the holder (null when it does not answer) if it is taken. */
export async function lockFolder(folder: string): Promise<FolderLock | { heldBy: number | null }> {
  const real = await realpath(folder);
  for (const address of addressesOf(real)) {
    const taken = await takeAddress(address);
    if (taken !== 'unsupported') return taken;
  }
  throw new Error(`No lock can be made for ${folder}: neither it nor ${tmpdir()} accepts a local socket`);
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
    const revived = await removeStale(address);
    if (revived) return { heldBy: revived.processId };
  }
  return { heldBy: null };
}

/**
 * Moves the dead socket away before deleting it, and asks again: when two processes find the same dead socket, the slower
 * one would otherwise delete the lock that the faster one has just made.
 */
async function removeStale(address: string): Promise<{ processId: number | null } | null> {
  if (process.platform === 'win32') return null;
  const aside = join(address, '..', `.${randomUUID().slice(0, 8)}`);
  try {
    await rename(address, aside);
  } catch {
    return null;
  }
  const holder = await askHolder(aside);
  if (holder !== 'nobody') await link(aside, address).catch(() => {});
  await unlink(aside).catch(() => {});
  return holder === 'nobody' ? null : holder;
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
      // A holder with a full queue refuses with EAGAIN: it is there.
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
