/** Writers that send packets and changes of one object each, one after the other, and record the answers. */
import { setTimeout as wait } from 'node:timers/promises';
import { random } from '../../support/runs.js';

const PACE_MS = 8;
const AFTER_FAILURE_MS = 50;
const GIVE_UP_MS = 60_000;
const PATCH_EVERY = 5;

/** One request. */
export interface Sent {
  readonly object: string;
  readonly kind: 'packet' | 'patch';
  readonly key: string;
  /** Null when the connection broke before the answer was complete. */
  readonly status: number | null;
  readonly retryAfter: number;
  /** The answer to a writer. */
  readonly text?: string;
  /** By the clock of this process. */
  readonly startMs: number;
  readonly endMs: number;
}

export interface Writers {
  /** All requests, in the order of their answers. */
  readonly sent: readonly Sent[];
  /** Requests that were answered with 200. */
  acknowledged(): readonly Sent[];
  /** Resolves when no request is under way. */
  pause(): Promise<void>;
  resume(): void;
}

/** Starts one writer for each object; each request goes to a random instance. */
export function startWriters(
  urls: readonly string[],
  token: string,
  objects: readonly string[],
  paceMs = PACE_MS,
): Writers {
  const sent: Sent[] = [];
  const acknowledged: Sent[] = [];
  const counts = new Map<string, number>();
  let running: { is: boolean; over: Promise<unknown> } = { is: false, over: Promise.resolve() };
  const write = async (object: string, run: { is: boolean }): Promise<void> => {
    while (run.is) {
      const count = (counts.get(object) ?? 0) + 1;
      counts.set(object, count);
      const kind = count % PATCH_EVERY === 0 ? 'patch' : 'packet';
      const done = await send(urls[Math.floor(random() * urls.length)] ?? '', token, {
        object,
        kind,
        key: `${object}/${count}`,
      });
      sent.push(done);
      if (done.status === 200) acknowledged.push(done);
      await wait(done.status === 200 ? paceMs : AFTER_FAILURE_MS);
    }
  };
  return {
    sent,
    acknowledged: () => acknowledged,
    async pause() {
      running.is = false;
      await running.over;
    },
    resume() {
      if (running.is) return;
      const run = { is: true, over: Promise.resolve() as Promise<unknown> };
      run.over = Promise.all(objects.map((object) => write(object, run)));
      running = run;
    },
  };
}

async function send(url: string, token: string, one: Pick<Sent, 'object' | 'kind' | 'key'>): Promise<Sent> {
  const startMs = performance.now();
  const path = one.kind === 'packet' ? `objects/${one.object}/packets` : `objects/${one.object}`;
  const response = await fetch(`${url}/api/v1/${path}`, {
    method: one.kind === 'packet' ? 'POST' : 'PATCH',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
    body: JSON.stringify(one.kind === 'packet' ? { key: one.key } : { mark: one.key }),
    signal: AbortSignal.timeout(GIVE_UP_MS),
  }).catch(() => null);
  // An incomplete answer counts as none.
  const text = await response?.text().catch(() => undefined);
  const status = text === undefined ? null : (response?.status ?? null);
  const retryAfter = Number(response?.headers.get('retry-after') ?? 0);
  return { ...one, status, retryAfter, ...(text !== undefined && { text }), startMs, endMs: performance.now() };
}
