/** Freezes processes, as a machine that hangs does. */
import { readdir, readFile } from 'node:fs/promises';
import { until } from './until.js';

/**
 * Stops a process with SIGSTOP, and resolves when all its threads have stopped: on a busy machine some run for a while after the
 * signal, and may still answer. Without /proc it does not wait.
 */
export async function freezeProcess(processId: number): Promise<void> {
  process.kill(processId, 'SIGSTOP');
  const folder = `/proc/${processId}/task`;
  const threads = await readdir(folder).catch(() => []);
  // The state follows the name, which stands in parentheses: proc_pid_stat(5).
  const isStopped = async (thread: string) => {
    // A thread that has ended meanwhile has no state.
    const state = await readFile(`${folder}/${thread}/stat`, 'utf8').catch(() => null);
    return state === null || /.*\) [TXZ] /s.test(state);
  };
  const areStopped = async () => (await Promise.all(threads.map(isStopped))).every(Boolean);
  await until(areStopped, `all threads of process ${processId} to stop`);
}
