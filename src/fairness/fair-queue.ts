/** Work of which only so much is done at once: callers take turns, so that none of them waits for all work of another. */
import { type ApiError, tooManyRequests, unavailable } from '../errors.js';
import { LIMITS } from '../model/limits.js';

export interface QueueLimits {
  /** What is done at once, in all and of one caller. */
  readonly atOnce: number;
  readonly perCaller: number;
  /** What waits, in all and of one caller, and for how long. */
  readonly waiting: number;
  readonly waitingPerCaller: number;
  readonly waitMs: number;
  /** After work, so many times its duration pass before more work of the same caller begins; none where absent. */
  readonly rests?: number;
}

export interface FairQueue {
  /**
   * Does the work when it is the caller's turn. Throws 429 where the caller's own work is in the way for too long, 503 where
   * it is that of others; the signal's reason where it is aborted while the work waits.
   */
  run<T>(caller: string, work: () => Promise<T>, signal?: AbortSignal | null): Promise<T>;
  /** What `mayStart` depends on has changed. */
  recheck(): void;
}

/** A caller's work. Accounts without any are dropped together when there are many of them, never one by one. */
interface Account {
  readonly caller: string;
  running: number;
  waiting: Waiter[];
  /** It rests until then. */
  restsUntilMs: number;
}

interface Waiter {
  readonly start: () => void;
}

/** `what` is spoken of in refusals; `mayStart`: whether there is a reason beside the limits to let the caller's work wait. */
export function createFairQueue(
  what: string,
  limits: QueueLimits,
  mayStart: (caller: string) => boolean = () => true,
): FairQueue {
  const queue = new Queue(what, limits, mayStart);
  return { run: (caller, work, signal = null) => queue.run(caller, work, signal), recheck: () => queue.startNext() };
}

class Queue {
  #accounts = new Map<string, Account>();
  /** Those who wait, the one whose turn is next first. */
  #turns: Account[] = [];
  #running = 0;
  #waiting = 0;
  #dropAt: number = LIMITS.idleCallers;

  constructor(
    readonly what: string,
    readonly limits: QueueLimits,
    readonly mayStart: (caller: string) => boolean,
  ) {}

  async run<T>(caller: string, work: () => Promise<T>, signal: AbortSignal | null): Promise<T> {
    const account = this.#accountOf(caller);
    if (account.waiting.length === 0 && this.#hasRoom(account)) this.#begin(account);
    else await this.#wait(account, signal);
    const { rests = 0 } = this.limits;
    const startMs = rests > 0 ? performance.now() : 0;
    try {
      return await work();
    } finally {
      this.#running--;
      account.running--;
      if (rests > 0) this.#restFor(account, performance.now() - startMs);
      if (this.#waiting > 0) this.startNext();
    }
  }

  /** Begins what may be begun: of each caller who waits one, then of each another. */
  startNext(): void {
    for (let passed = 0; passed < this.#turns.length && this.#running < this.limits.atOnce; ) {
      const account = this.#turns.shift() as Account;
      const begins = this.#hasRoom(account);
      if (begins) {
        this.#begin(account);
        (account.waiting.shift() as Waiter).start();
        this.#waiting--;
      }
      passed = begins ? 0 : passed + 1;
      if (account.waiting.length > 0) this.#turns.push(account);
    }
  }

  /** What was over at once needs no rest. */
  #restFor(account: Account, tookMs: number): void {
    const { rests = 0 } = this.limits;
    if (tookMs < 1) return;
    account.restsUntilMs = performance.now() + rests * tookMs;
    this.#wake(account);
  }

  /** A timer counts from the beginning of the turn: it may be early. */
  #wake(account: Account): void {
    const leftMs = account.restsUntilMs - performance.now();
    if (leftMs <= 0) this.startNext();
    else setTimeout(() => this.#wake(account), Math.ceil(leftMs)).unref();
  }

  #isRested = ({ restsUntilMs }: Account): boolean => restsUntilMs === 0 || performance.now() >= restsUntilMs;

  #begin(account: Account): void {
    this.#running++;
    account.running++;
  }

  #hasRoom(account: Account): boolean {
    const { caller, running } = account;
    const isFree = this.#running < this.limits.atOnce && running < this.limits.perCaller;
    return isFree && this.#isRested(account) && this.mayStart(caller);
  }

  #wait(account: Account, signal: AbortSignal | null): Promise<void> {
    const { waiting, waitingPerCaller, waitMs } = this.limits;
    if (account.waiting.length >= waitingPerCaller) throw this.#ownFault();
    if (this.#waiting >= waiting) throw this.#othersFault();
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', leave);
      };
      const start = (): void => {
        end();
        resolve();
      };
      const waiter: Waiter = { start };
      const giveUp = (reason: unknown): void => {
        end();
        this.#remove(account, waiter);
        reject(reason);
      };
      const leave = (): void => giveUp(signal?.reason);
      const timer = setTimeout(
        () => giveUp(this.#isOwnFault(account) ? this.#ownFault() : this.#othersFault()),
        waitMs,
      );
      signal?.addEventListener('abort', leave);
      if (account.waiting.push(waiter) === 1) this.#turns.push(account);
      this.#waiting++;
      if (signal?.aborted) leave();
    });
  }

  #remove(account: Account, waiter: Waiter): void {
    account.waiting = account.waiting.filter((one) => one !== waiter);
    if (account.waiting.length === 0) this.#turns = this.#turns.filter((one) => one !== account);
    this.#waiting--;
  }

  #isOwnFault = (account: Account): boolean =>
    account.running >= this.limits.perCaller || !this.#isRested(account) || !this.mayStart(account.caller);

  #ownFault = (): ApiError => tooManyRequests(1, `too many ${this.what} of yours at once; wait for their answers`);

  #othersFault = (): ApiError => unavailable(`too many ${this.what} at once`);

  #accountOf(caller: string): Account {
    const known = this.#accounts.get(caller);
    if (known !== undefined) return known;
    if (this.#accounts.size >= this.#dropAt) this.#dropIdle();
    const account: Account = { caller, running: 0, waiting: [], restsUntilMs: 0 };
    this.#accounts.set(caller, account);
    return account;
  }

  #dropIdle(): void {
    const busy = [...this.#accounts].filter(([, { running, waiting }]) => running > 0 || waiting.length > 0);
    this.#accounts = new Map(busy);
    this.#dropAt = Math.max(LIMITS.idleCallers, 2 * busy.length);
  }
}
