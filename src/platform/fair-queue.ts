/**
 * A queue with bounded concurrency that serves callers round-robin, so that none waits for all work of another. Callers of one tenant
 * take turns as one, however many they are.
 */

import { type ApiError, tooManyRequests, unavailable } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { clock } from './clock.js';

export interface QueueLimits {
  /** Running work, in total and per caller. */
  readonly atOnce: number;
  readonly perCaller: number;
  /** Running work of all callers of a tenant, so that a place is left for others; unbounded when absent. */
  readonly perTenant?: number;
  /** Waiting work, in total and per caller, and how long it may wait. */
  readonly waiting: number;
  readonly waitingPerCaller: number;
  readonly waitMs: number;
  /** After its work ends, a caller rests for this multiple of its duration; 0 when absent. */
  readonly rests?: number;
  /** The clock that counts the duration of the work, in ms; `clock.steadyMs` when absent. */
  readonly durationClock?: () => number;
}

/** `tenantId` is null or absent for a caller that is a tenant by itself. */
export interface QueueCaller {
  readonly userId: string;
  readonly tenantId?: string | null;
}

export interface FairQueue {
  /**
   * Runs the work when a slot is free. Throws 429 when the caller's own work blocks it for too long, 503 when work of others
   * does, and the signal's reason when the signal is aborted while the work waits.
   */
  run<T>(caller: string | QueueCaller, work: () => Promise<T>, signal?: AbortSignal | null): Promise<T>;
  /** To be called when the result of `mayStart` may have changed. */
  recheck(): void;
}

/** Shorter work holds up nothing else, and needs no rest. */
const BRIEF_MS = 1;

/** A caller's work. Idle accounts are dropped together, once there are many, never one by one. */
interface Account {
  readonly caller: string;
  readonly tenant: Tenant;
  running: number;
  waiting: Waiter[];
  restsUntilMs: number;
}

/** The callers that take turns as one. */
interface Tenant {
  running: number;
  /** When its work began last, as a count of all beginnings; at first, when the tenant came. */
  lastTurn: number;
}

interface Waiter {
  readonly start: () => void;
}

/** `name` appears in error messages. `mayStart` returns false to hold a caller's work back for reasons beside the limits. */
export function createFairQueue(
  name: string,
  limits: QueueLimits,
  mayStart: (caller: string) => boolean = () => true,
): FairQueue {
  const queue = new Queue(name, limits, mayStart);
  return {
    run: (caller, work, signal = null) =>
      queue.run(typeof caller === 'string' ? { userId: caller } : caller, work, signal),
    recheck: () => queue.startNext(),
  };
}

class Queue {
  #accounts = new Map<string, Account>();
  #tenants = new Map<string, Tenant>();
  #turns = 0;
  /** Accounts with waiting work, in the order in which they are served. */
  #order: Account[] = [];
  #running = 0;
  #waiting = 0;
  #dropAt: number = LIMITS.idleCallers;

  constructor(
    readonly name: string,
    readonly limits: QueueLimits,
    readonly mayStart: (caller: string) => boolean,
  ) {}

  async run<T>(caller: QueueCaller, work: () => Promise<T>, signal: AbortSignal | null): Promise<T> {
    const account = this.#accountOf(caller);
    if (account.waiting.length === 0 && this.#canStart(account)) this.#begin(account);
    else await this.#wait(account, signal);
    const { rests = 0, durationClock = () => clock.steadyMs() } = this.limits;
    const startMs = durationClock();
    try {
      return await work();
    } finally {
      const tookMs = rests > 0 ? durationClock() - startMs : 0;
      // The event loop serves others before the next work starts. Only the work counts towards the rest.
      if (tookMs >= BRIEF_MS) await clock.nextTurn();
      this.#running--;
      account.running--;
      account.tenant.running--;
      if (rests > 0) this.#restFor(account, tookMs);
      if (this.#waiting > 0) this.startNext();
    }
  }

  /** Starts waiting work round-robin: one item of each tenant, and within a tenant one item of each caller. */
  startNext(): void {
    while (this.#running < this.limits.atOnce) {
      const account = this.#next();
      if (account === null) return;
      this.#order.splice(this.#order.indexOf(account), 1);
      this.#begin(account);
      (account.waiting.shift() as Waiter).start();
      this.#waiting--;
      if (account.waiting.length > 0) this.#order.push(account);
    }
  }

  /** The first caller that may start, of the tenant with the least running work, whose last turn is the longest ago. */
  #next(): Account | null {
    let best: Account | null = null;
    for (const account of this.#order) {
      if ((best === null || isBefore(account.tenant, best.tenant)) && this.#canStart(account)) best = account;
    }
    return best;
  }

  #restFor(account: Account, tookMs: number): void {
    const { rests = 0 } = this.limits;
    if (tookMs < BRIEF_MS) return;
    account.restsUntilMs = clock.steadyMs() + rests * tookMs;
    this.#wake(account);
  }

  /** Timers count from the start of the event loop's iteration, so they may fire early. */
  #wake(account: Account): void {
    const leftMs = account.restsUntilMs - clock.steadyMs();
    if (leftMs <= 0) this.startNext();
    else clock.setTimeout(() => this.#wake(account), Math.ceil(leftMs)).unref();
  }

  #isRested = ({ restsUntilMs }: Account): boolean => restsUntilMs === 0 || clock.steadyMs() >= restsUntilMs;

  #begin(account: Account): void {
    this.#running++;
    account.running++;
    account.tenant.running++;
    account.tenant.lastTurn = ++this.#turns;
  }

  #canStart(account: Account): boolean {
    const { caller, running, tenant } = account;
    const { atOnce, perCaller, perTenant = atOnce } = this.limits;
    const isFree = this.#running < atOnce && running < perCaller && tenant.running < perTenant;
    return isFree && this.#isRested(account) && this.mayStart(caller);
  }

  #wait(account: Account, signal: AbortSignal | null): Promise<void> {
    const { waiting, waitingPerCaller, waitMs } = this.limits;
    if (account.waiting.length >= waitingPerCaller) throw this.#callerBusy();
    if (this.#waiting >= waiting) throw this.#queueBusy();
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clock.clearTimer(timer);
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
      const timer = clock.setTimeout(() => {
        // Where the event loop stood still, this may run before the timer that ends the rest of the caller.
        this.startNext();
        if (!account.waiting.includes(waiter)) return;
        giveUp(this.#isCallerBusy(account) ? this.#callerBusy() : this.#queueBusy());
      }, waitMs);
      signal?.addEventListener('abort', leave);
      if (account.waiting.push(waiter) === 1) this.#order.push(account);
      this.#waiting++;
      if (signal?.aborted) leave();
    });
  }

  #remove(account: Account, waiter: Waiter): void {
    account.waiting = account.waiting.filter((one) => one !== waiter);
    if (account.waiting.length === 0) this.#order = this.#order.filter((one) => one !== account);
    this.#waiting--;
  }

  #isCallerBusy = (account: Account): boolean =>
    account.running >= this.limits.perCaller || !this.#isRested(account) || !this.mayStart(account.caller);

  #callerBusy = (): ApiError => tooManyRequests(1, `too many of your ${this.name} at once; wait for their answers`);

  #queueBusy = (): ApiError => unavailable(`too many ${this.name} at once`);

  #accountOf({ userId: caller, tenantId = null }: QueueCaller): Account {
    const known = this.#accounts.get(caller);
    if (known !== undefined) return known;
    if (this.#accounts.size >= this.#dropAt) this.#dropIdle();
    const account: Account = { caller, tenant: this.#tenantOf(tenantId), running: 0, waiting: [], restsUntilMs: 0 };
    this.#accounts.set(caller, account);
    return account;
  }

  #tenantOf(tenantId: string | null): Tenant {
    const known = tenantId === null ? undefined : this.#tenants.get(tenantId);
    if (known !== undefined) return known;
    const tenant: Tenant = { running: 0, lastTurn: this.#turns };
    if (tenantId !== null) this.#tenants.set(tenantId, tenant);
    return tenant;
  }

  #dropIdle(): void {
    const busy = [...this.#accounts].filter(([, { running, waiting }]) => running > 0 || waiting.length > 0);
    this.#accounts = new Map(busy);
    const used = new Set(busy.map(([, { tenant }]) => tenant));
    this.#tenants = new Map([...this.#tenants].filter(([, tenant]) => used.has(tenant)));
    this.#dropAt = Math.max(LIMITS.idleCallers, 2 * busy.length);
  }
}

const isBefore = (a: Tenant, b: Tenant): boolean =>
  a.running === b.running ? a.lastTurn < b.lastTurn : a.running < b.running;
