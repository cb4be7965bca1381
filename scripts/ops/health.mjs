/**
 * The health check of Docker: reports whether this instance is ready. Docker restarts an ended container but not a hanging one, so
 * this script ends an instance that takes connections and has not answered for a minute. An unavailable database is no reason to do
 * so, nor is a start that takes long: until the instance listens, connections are refused.
 */
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const PATIENCE_MS = 60_000;
const ANSWER_MS = 4_000;
const base = `http://127.0.0.1:${process.env.OPS_PORT || 9464}`;
/** Written at the first missing answer: its age is the duration of the silence. */
const mark = join(tmpdir(), 'vigil-silent');

let isRefused = false;
const ask = (path) =>
  fetch(`${base}${path}`, { signal: AbortSignal.timeout(ANSWER_MS) }).catch((error) => {
    isRefused = error.cause?.code === 'ECONNREFUSED';
    return null;
  });

/** The service is the child of Docker's init process. */
function endService() {
  // Only in a container: elsewhere, process 1 has other children.
  if (process.ppid !== 0) return;
  for (const id of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    // The name is in parentheses and may contain any character; the state and the parent follow it.
    const [, parent] = /\) \S (\d+) [^)]*$/.exec(readFileSync(`/proc/${id}/stat`, 'utf8')) ?? [];
    if (parent === '1') process.kill(Number(id), 'SIGKILL');
  }
}

const ready = await ask('/ready');
if (ready !== null || (await ask('/health')) !== null || isRefused) {
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
