/** Memory that callers share: how much of it each has, and all together. */
import { type ApiError, tooManyRequests, unavailable } from '../errors.js';
import { LIMITS } from '../model/limits.js';

export interface BudgetLimits {
  readonly perCaller: number;
  readonly inAll: number;
  /** Beyond `inAll`, for callers who have little: so many bytes of each, and of all of them. */
  readonly little: number;
  readonly reserve: number;
}

export interface Budget {
  /** Counts bytes that the caller has from now on; or gives why there cannot be so many: 429 for the caller's own, 503. */
  take(caller: string, bytes: number): ApiError | null;
  /** Counts bytes that cannot be refused any more. */
  add(caller: string, bytes: number): void;
  giveBack(caller: string, bytes: number): void;
  /** How many the caller has. */
  of(caller: string): number;
}

/** `what` is spoken of in refusals; `onLess` is told when somebody has less. */
export function createBudget(what: string, limits: BudgetLimits, onLess: () => void = () => undefined): Budget {
  let accounts = new Map<string, { bytes: number }>();
  let total = 0;
  let dropAt: number = LIMITS.idleCallers;
  const accountOf = (caller: string): { bytes: number } => {
    const known = accounts.get(caller);
    if (known !== undefined) return known;
    if (accounts.size >= dropAt) {
      // Together, when there are many: docs/development.md says why.
      accounts = new Map([...accounts].filter(([, { bytes }]) => bytes > 0));
      dropAt = Math.max(LIMITS.idleCallers, 2 * accounts.size);
    }
    const account = { bytes: 0 };
    accounts.set(caller, account);
    return account;
  };
  const add = (caller: string, bytes: number): void => {
    accountOf(caller).bytes += bytes;
    total += bytes;
  };
  return {
    add,
    take(caller, bytes) {
      const own = accountOf(caller).bytes + bytes;
      if (own > limits.perCaller) return tooManyRequests(1, `too many bytes of ${what} of yours at once`);
      const most = own <= limits.little ? limits.inAll + limits.reserve : limits.inAll;
      if (total + bytes > most) return unavailable(`too many bytes of ${what} at once`);
      add(caller, bytes);
      return null;
    },
    giveBack(caller, bytes) {
      add(caller, -bytes);
      onLess();
    },
    of: (caller) => accounts.get(caller)?.bytes ?? 0,
  };
}
