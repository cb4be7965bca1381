// Posts packets at a rate, from a process of its own, beside something else.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Target } from './connection.js';
import type { Size } from './data.js';
import type { Job, ToLoad } from './load.js';

export interface Posting {
  readonly target: Target;
  readonly size: Size;
  readonly paced: NonNullable<Job['paced']>;
}

/** Posts for as long as `run` takes. */
export async function whilePosting<T>({ target, size, paced }: Posting, run: () => Promise<T>): Promise<T> {
  const load = fork(fileURLToPath(new URL('./load.js', import.meta.url)), { execArgv: [] });
  try {
    const { url, token } = target;
    load.send({ job: { workload: '', part: 'requests', paced, target: { url, token }, size } } satisfies ToLoad);
    await once(load, 'message');
    load.send('go' satisfies ToLoad);
    return await run();
  } finally {
    load.kill('SIGKILL');
  }
}
