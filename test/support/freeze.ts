/** Freezes processes, as a machine that hangs does. */
import { readdir, readFile } from 'node:fs/promises';
import { until } from './until.js';

/**
 * Stops a process with SIGSTOP, and resolves when all its threads stand still: on a busy machine some run on for a while after the
 * signal, and may still answer. Without /proc it does not wait.
 */
export async function freezeProcess(processId: number): Promise<void> {
  process.kill(processId, 'SIGSTOP');
  const folder = `/proc/${processId}/task`;
  const threads = await readdir(folder).catch(() => []);
  // The state follows the name, which stands in parentheses: proc_pid_stat(5).
  const stands = async (thread: string) => {
    // A thread that has ended meanwhile has no state.
    const state = await readFile(`${folder}/${thread}/stat`, 'utf8').catch(() => null);
    return state === null || /.*\) [TXZ] /s.test(state);
  };
  const stand = async () => (await Promise.all(threads.map(stands))).every(Boolean);
  await until(stand, `process ${processId} to stand still`);
}
