/**
 * Asked by Docker now and then: is this instance ready? Docker starts again what has ended, and leaves alone what only hangs:
 * an instance that says nothing at all for a minute is ended here. A database that is away is no reason for that.
 */
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const PATIENCE_MS = 60_000;
const ANSWER_MS = 4_000;
const base = `http://127.0.0.1:${process.env.OPS_PORT || 9464}`;
/** Written at the first silence: its age is how long the silence has lasted. */
const mark = join(tmpdir(), 'vigil-silent');

const ask = (path) => fetch(`${base}${path}`, { signal: AbortSignal.timeout(ANSWER_MS) }).catch(() => null);

/** The service is the child of the init process that Docker puts before it. */
function endService() {
  // Elsewhere than in a container, where this was started from outside, the children of process 1 are others.
  if (process.ppid !== 0) return;
  for (const id of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    // The name stands in brackets and may hold anything; the state and the parent come after it.
    const [, parent] = /\) \S (\d+) [^)]*$/.exec(readFileSync(`/proc/${id}/stat`, 'utf8')) ?? [];
    if (parent === '1') process.kill(Number(id), 'SIGKILL');
  }
}

const ready = await ask('/ready');
if (ready !== null || (await ask('/health')) !== null) {
  rmSync(mark, { force: true });
  if (ready !== null) process.stdout.write(await ready.text());
} else {
  const since = statSync(mark, { throwIfNoEntry: false })?.mtimeMs;
  if (since === undefined) writeFileSync(mark, '');
  else if (Date.now() - since > PATIENCE_MS) {
    rmSync(mark);
    endService();
  }
}
process.exit(ready?.ok ? 0 : 1);
