/**
 * Virtual time: one queue of events for the whole simulated world. An event runs, then everything that follows from it without
 * waiting, and only then the next event: so a run depends on nothing but its seed.
 */
import type { Clock, Timer, WaitOptions } from '../../src/platform/clock.js';
import type { Random } from './random.js';

export const EPOCH_MS = Date.UTC(2026, 0, 1);
/** A run that needs more has a loop that never rests. */
const EVENTS_MAX = 200_000;

/** One life of a process, from its start until it is killed: nothing of it runs afterwards. */
export class Incarnation {
  readonly name: string;
  /** How far its clock is ahead of the world's. */
  skewMs = 0;
  isFenced = false;
  /** What it has to do once it is no longer frozen; null while it is not. */
  held: (() => void)[] | null = null;

  constructor(name: string) {
    this.name = name;
  }
}

interface Event {
  readonly atMs: number;
  readonly order: number;
  /** Null: the world outside of all processes. */
  readonly owner: Incarnation | null;
  run: (() => void) | null;
}

const isBefore = (a: Event, b: Event): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);

export class VirtualTime {
  nowMs = EPOCH_MS;
  events = 0;
  /** Replaced at each step. */
  random: Random = () => 0.5;
  /** Whose code runs. */
  current: Incarnation | null = null;
  /** Called for an error that nothing caught. */
  onError: (error: unknown) => void = (error) => {
    throw error;
  };
  #order = 0;
  #ids = 0;
  readonly #queue: Event[] = [];
  readonly #turns = new Turns();

  /** Runs it later in the name of the owner; the returned function cancels it. */
  after(ms: number, owner: Incarnation | null, run: () => void): () => void {
    const event: Event = { atMs: this.nowMs + Math.max(0, ms), order: this.#order++, owner, run };
    this.#push(event);
    return () => {
      event.run = null;
    };
  }

  /** Lets this much time pass. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.nowMs + ms;
    for (;;) {
      const next = this.#queue[0];
      if (next === undefined || next.atMs > untilMs) break;
      this.#pop();
      if (next.run === null || next.owner?.isFenced) continue;
      this.nowMs = next.atMs;
      await this.#run(next);
    }
    this.nowMs = untilMs;
  }

  /** Runs something now, and all that follows from it without waiting. */
  async runAs(owner: Incarnation | null, run: () => void): Promise<void> {
    await this.#run({ atMs: this.nowMs, order: 0, owner, run });
  }

  async #run({ owner, run, atMs, order }: Event): Promise<void> {
    if (owner?.held) {
      owner.held.push(() => this.#push({ atMs: Math.max(atMs, this.nowMs), order, owner, run }));
      return;
    }
    if (++this.events > EVENTS_MAX) throw new Error(`the run exceeds its budget of ${EVENTS_MAX} events`);
    this.current = owner;
    try {
      run?.();
    } catch (error) {
      this.onError(error);
    }
    await this.#turns.next();
    this.current = null;
  }

  freeze(owner: Incarnation): void {
    owner.held ??= [];
  }

  thaw(owner: Incarnation): void {
    const held = owner.held ?? [];
    owner.held = null;
    for (const again of held) again();
  }

  /** The clock of the code under test: it acts for whoever runs. */
  clock(): Clock {
    return {
      now: () => Math.floor(this.nowMs) + (this.current?.skewMs ?? 0),
      steadyMs: () => this.nowMs - EPOCH_MS,
      cpuMs: () => this.nowMs - EPOCH_MS,
      setTimeout: (run, ms) => new VirtualTimer(this, { run, ms, repeats: false }),
      setInterval: (run, ms) => new VirtualTimer(this, { run, ms, repeats: true }),
      clearTimer: (timer) => (timer as VirtualTimer | null | undefined)?.clear(),
      setImmediate: (run) => void this.after(0, this.current, run),
      wait: (ms, options) => this.#wait(ms, options),
      nextTurn: () => new Promise((resolve) => void this.after(0, this.current, resolve)),
      random: () => this.random(),
      randomId: () => {
        const digits = (++this.#ids).toString(16).padStart(12, '0');
        return `00000000-0000-4000-8000-${digits}`;
      },
    };
  }

  #wait(ms: number, { signal }: WaitOptions = {}): Promise<void> {
    return new Promise((resolve, reject) => {
      const refuse = (): void => reject(signal?.reason);
      if (signal?.aborted) {
        refuse();
        return;
      }
      const cancel = this.after(ms, this.current, () => {
        signal?.removeEventListener('abort', abort);
        resolve();
      });
      const abort = (): void => {
        cancel();
        refuse();
      };
      signal?.addEventListener('abort', abort, { once: true });
    });
  }

  #push(event: Event): void {
    const queue = this.#queue;
    let at = queue.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(event, queue[parent] as Event)) break;
      queue[at] = queue[parent] as Event;
      at = parent;
    }
    queue[at] = event;
  }

  #pop(): void {
    const queue = this.#queue;
    const last = queue.pop() as Event;
    if (queue.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= queue.length) break;
      if (child + 1 < queue.length && isBefore(queue[child + 1] as Event, queue[child] as Event)) child++;
      if (!isBefore(queue[child] as Event, last)) break;
      queue[at] = queue[child] as Event;
      at = child;
    }
    queue[at] = last;
  }
}

const realImmediate = setImmediate;
/** How many turns are asked for at once: the event loop goes round, and asks the kernel for news, once for all of them. */
const TURNS = 64;

/** Ends of turns: between two immediates, Node.js settles every promise that can be settled. */
class Turns {
  #left = 0;
  #end: (() => void) | null = null;

  /** Resolves once everything that follows from what runs has happened. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#end = resolve;
      if (this.#left > 0) return;
      this.#left = TURNS;
      for (let nth = 0; nth < TURNS; nth++) realImmediate(this.#endTurn);
    });
  }

  readonly #endTurn = (): void => {
    this.#left--;
    const end = this.#end;
    this.#end = null;
    end?.();
  };
}

interface TimerWork {
  readonly run: () => void;
  readonly ms: number;
  readonly repeats: boolean;
}

class VirtualTimer implements Timer {
  readonly #time: VirtualTime;
  readonly #work: TimerWork;
  readonly #owner: Incarnation | null;
  #cancel: () => void = () => undefined;

  constructor(time: VirtualTime, work: TimerWork) {
    this.#time = time;
    this.#work = work;
    this.#owner = time.current;
    this.refresh();
  }

  unref(): this {
    return this;
  }

  refresh(): this {
    this.#cancel();
    const { run, ms, repeats } = this.#work;
    // As in Node.js: a timer waits for a millisecond at least.
    this.#cancel = this.#time.after(Math.max(1, ms), this.#owner, () => {
      if (repeats) this.refresh();
      run();
    });
    return this;
  }

  clear(): void {
    this.#cancel();
  }
}
