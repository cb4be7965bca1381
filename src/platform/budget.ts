/** Bounds memory that callers share: per caller and in total. */
import { type ApiError, tooManyRequests, unavailable } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';

export interface BudgetLimits {
  readonly perCaller: number;
  readonly inAll: number;
  /** A reserve beyond `inAll` for callers that hold at most `reservePerCaller` bytes each. */
  readonly reservePerCaller: number;
  readonly reserve: number;
}

export interface Budget {
  /** Counts bytes for the caller. Or returns an error: 429 beyond the bound per caller, 503 beyond the total. */
  take(caller: string, bytes: number): ApiError | null;
  /** Counts bytes that can no longer be refused. */
  add(caller: string, bytes: number): void;
  release(caller: string, bytes: number): void;
  /** The bytes that the caller holds. */
  of(caller: string): number;
}

/** `name` appears in error messages; `onRelease` runs whenever bytes are released. */
export function createBudget(name: string, limits: BudgetLimits, onRelease: () => void = () => undefined): Budget {
  let accounts = new Map<string, { bytes: number }>();
  let total = 0;
  let dropAt: number = LIMITS.idleCallers;
  const accountOf = (caller: string): { bytes: number } => {
    const known = accounts.get(caller);
    if (known !== undefined) return known;
    if (accounts.size >= dropAt) {
      // Idle accounts are dropped together, once there are many: docs/development.md says why.
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
      if (own > limits.perCaller) return tooManyRequests(1, `too many bytes of your ${name} at once`);
      const max = own <= limits.reservePerCaller ? limits.inAll + limits.reserve : limits.inAll;
      if (total + bytes > max) return unavailable(`too many bytes of ${name} at once`);
      add(caller, bytes);
      return null;
    },
    release(caller, bytes) {
      add(caller, -bytes);
      onRelease();
    },
    of: (caller) => accounts.get(caller)?.bytes ?? 0,
  };
}
