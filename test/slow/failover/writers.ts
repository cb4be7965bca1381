/** Devices and operators: each writes to an object of its own, one thing after the other, and notes what it was told. */
import { setTimeout as wait } from 'node:timers/promises';

const PACE_MS = 8;
const AFTER_FAILURE_MS = 50;
const GIVE_UP_MS = 20_000;
const PATCH_EVERY = 5;

/** One thing that was written, or may have been. */
export interface Sent {
  readonly object: string;
  readonly kind: 'packet' | 'patch';
  readonly key: string;
  /** Null when the connection was cut before an answer came. */
  readonly status: number | null;
  readonly retryAfter: number;
  /** Of the process' own clock. */
  readonly startMs: number;
  readonly endMs: number;
}

export interface Writers {
  /** Everything, in the order in which it ended. */
  readonly sent: readonly Sent[];
  /** Packets and patches that were acknowledged. */
  acknowledged(): readonly Sent[];
  /** Returns when nothing more is under way. */
  pause(): Promise<void>;
  resume(): void;
}

/** Starts one writer for each object; each takes one of the instances at random for each thing it writes. */
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
      const done = await send(urls[Math.floor(Math.random() * urls.length)] ?? '', token, {
        ...{ object, kind, key: `${object}/${count}` },
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
  // The answer is whole, or there was none.
  const whole = await response?.text().catch(() => null);
  const status = whole == null ? null : (response?.status ?? null);
  const retryAfter = Number(response?.headers.get('retry-after') ?? 0);
  return { ...one, status, retryAfter, startMs, endMs: performance.now() };
}
