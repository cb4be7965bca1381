/** Stops a mongod that outlived its killed service. */
import { execFile } from 'node:child_process';
import { readFile, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { MongoClient } from 'mongodb';
import type { ServerLog } from './binary.js';

/** The data folder of the mongod, and its last URI. */
export type FormerInstance = { dataPath: string; uri: string; log: ServerLog };

const answerTimeoutMs = 2_000;
const shutdownTimeoutMs = 10_000;
const killTimeoutMs = 2_000;
const pollMs = 20;

/** Stops a mongod that still runs on the data, by its shutdown command or else by force. */
export async function endOrphan(orphan: FormerInstance): Promise<void> {
  const processId = await readProcessId(orphan.dataPath);
  if (processId === null || !(await isAlive(processId))) return;
  const isKnown = await usesData(processId, orphan.dataPath);
  // On Windows the command line is unavailable: our key and the server's own path identify it.
  if (!isKnown && process.platform !== 'win32') return;
  orphan.log.warn({ processId }, 'The MongoDB of a killed service still runs; shutting it down');
  if ((await shutDown(orphan)) && (await waitUntilGone(processId, shutdownTimeoutMs))) return;
  for (const signal of isKnown ? (['SIGTERM', 'SIGKILL'] as const) : []) {
    process.kill(processId, signal);
    if (await waitUntilGone(processId, killTimeoutMs)) return;
  }
}

/** mongod writes its process id into its lock file, and empties the file at an orderly shutdown. */
async function readProcessId(dataPath: string): Promise<number | null> {
  const text = await readFile(join(dataPath, 'mongod.lock'), 'utf8').catch(() => '');
  const processId = Number.parseInt(text, 10);
  return processId > 1 ? processId : null;
}

async function shutDown({ uri, dataPath }: FormerInstance): Promise<boolean> {
  const client = new MongoClient(uri, { serverSelectionTimeoutMS: answerTimeoutMs, maxPoolSize: 1 });
  try {
    const admin = client.db('admin');
    // A copied data folder has the same key, so the path identifies the server.
    const options = await admin.command({ getCmdLineOpts: 1 });
    if ((await realpath(options.parsed.storage.dbPath)) !== (await realpath(dataPath))) return false;
    // The server never answers: it closes the connection.
    await admin.command({ shutdown: 1, force: true }).catch(() => {});
    return true;
  } catch {
    return false;
  } finally {
    await client.close();
  }
}

async function waitUntilGone(processId: number, limitMs: number): Promise<boolean> {
  const deadline = Date.now() + limitMs;
  while (await isAlive(processId)) {
    if (Date.now() > deadline) return false;
    await sleep(pollMs);
  }
  return true;
}

async function isAlive(processId: number): Promise<boolean> {
  try {
    process.kill(processId, 0);
  } catch {
    return false;
  }
  if (process.platform !== 'linux') return true;
  // In a container dead processes may never be reaped, and stay in state Z. The first thread is in that state before the others
  // have released the files and the port, so the threads are counted.
  const stat = await readFile(`/proc/${processId}/stat`, 'utf8').catch(() => '');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return stat !== '' && !(/[ZX]/.test(fields[0] ?? '') && Number(fields[17]) <= 1);
}

/** Whether the process is a mongod on our data: another program may have its process id by now. */
async function usesData(processId: number, dataPath: string): Promise<boolean> {
  if (process.platform === 'linux') {
    const command = await readFile(`/proc/${processId}/cmdline`, 'utf8').catch(() => '');
    return command.split('\0').includes(dataPath);
  }
  const listed = promisify(execFile)('ps', ['-ww', '-o', 'command=', '-p', String(processId)]);
  return listed.then(
    ({ stdout }) => stdout.includes(dataPath),
    () => false,
  );
}
