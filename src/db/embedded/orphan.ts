/** Ends a mongod of ours that outlived a service which was killed. */
import { execFile } from 'node:child_process';
import { readFile, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { MongoClient } from 'mongodb';
import type { ServerLog } from './binary.js';

/** Where the mongod keeps its data, and the address at which it was last. */
export type FormerInstance = { dataPath: string; uri: string; log: ServerLog };

const answerTimeoutMs = 2_000;
const shutdownTimeoutMs = 10_000;
const killTimeoutMs = 2_000;
const pollMs = 20;

/** Ends the mongod that still runs on the data, if there is one, in order when it lets us and by force when it does not. */
export async function endOrphan(former: FormerInstance): Promise<void> {
  const processId = await readProcessId(former.dataPath);
  if (processId === null || !(await isAlive(processId))) return;
  const isKnown = await isOurs(processId, former.dataPath);
  // Where no command line tells (Windows), our key and the path that the server names do.
  if (!isKnown && process.platform !== 'win32') return;
  former.log.warn({ processId }, 'The MongoDB of a service that was killed still runs; shutting it down');
  if ((await shutDown(former)) && (await waitUntilGone(processId, shutdownTimeoutMs))) return;
  for (const signal of isKnown ? (['SIGTERM', 'SIGKILL'] as const) : []) {
    process.kill(processId, signal);
    if (await waitUntilGone(processId, killTimeoutMs)) return;
  }
}

/** mongod writes its process id into its lock file, and empties the file when it ends in order. */
async function readProcessId(dataPath: string): Promise<number | null> {
  const text = await readFile(join(dataPath, 'mongod.lock'), 'utf8').catch(() => '');
  const processId = Number.parseInt(text, 10);
  return processId > 1 ? processId : null;
}

async function shutDown({ uri, dataPath }: FormerInstance): Promise<boolean> {
  const client = new MongoClient(uri, { serverSelectionTimeoutMS: answerTimeoutMs, maxPoolSize: 1 });
  try {
    const admin = client.db('admin');
    // Our key opens it, but a copied data folder holds the same key: the paths tell which of the two it is.
    const options = await admin.command({ getCmdLineOpts: 1 });
    if ((await realpath(options.parsed.storage.dbPath)) !== (await realpath(dataPath))) return false;
    // The answer never comes: the connection ends with the server.
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
  // In a container nobody may collect dead processes: they keep their number, in state Z. The first thread is in that state
  // before the others have let go of the files and the port, so those are counted.
  const stat = await readFile(`/proc/${processId}/stat`, 'utf8').catch(() => '');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return stat !== '' && !(/[ZX]/.test(fields[0] ?? '') && Number(fields[17]) <= 1);
}

/** Whether the process is a mongod on our data: its number alone may be another program's by now. */
async function isOurs(processId: number, dataPath: string): Promise<boolean> {
  if (process.platform === 'linux') {
    const command = await readFile(`/proc/${processId}/cmdline`, 'utf8').catch(() => '');
    return command.split('\0').includes(dataPath);
  }
  const asked = promisify(execFile)('ps', ['-ww', '-o', 'command=', '-p', String(processId)]);
  return asked.then(
    ({ stdout }) => stdout.includes(dataPath),
    () => false,
  );
}
