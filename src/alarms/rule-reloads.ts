/**
 * Rules that have changed and are not read again yet. The change feed does not wait for them: they are read together, and only what
 * may concern them waits. A rule that changes often is read once for many changes.
 */
import { addressOfGroup } from '../core/access.js';
import { backoffMs } from '../core/backoff.js';
import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';

/** Whose objects a rule may read: its audience. */
export interface Concerned {
  readonly ownerId: string;
  readonly groupId: string;
}

/** An object is read by a rule only if it reaches one of these addresses. */
export const concernedAddresses = ({ ownerId, groupId }: Concerned): readonly string[] => [
  addressOfGroup(groupId),
  `user:${ownerId}`,
];

interface Waiting {
  /** The addresses of objects that wait for it. */
  readonly addresses: Set<string>;
  readonly read: Promise<void>;
  end(error?: unknown): void;
}

export interface RuleReloads {
  /** The rule has changed: whom it concerned, and concerns now. */
  add(ruleId: string, concerned: readonly Concerned[]): void;
  /** Whether a rule that may read an object with this audience is being read again. */
  isPending(audience: readonly string[]): boolean;
  isEmpty(): boolean;
  /** Resolves when the rules are read that had changed by now and may read such an object. Throws 503. */
  current(audience: readonly string[]): Promise<void>;
  /** Resolves when a rule is read. Throws 503. */
  currentRule(ruleId: string): Promise<void>;
  stop(): void;
}

export interface RuleReloadsOptions {
  /** Reads these rules again. Throws 503. */
  readonly read: (ruleIds: readonly string[]) => Promise<void>;
  readonly log: { warn(details: object, message: string): void };
}

interface State extends RuleReloadsOptions {
  readonly changed: Map<string, Waiting>;
  readonly reading: Map<string, Waiting>;
  /** How many of them wait at each address. */
  readonly addresses: Map<string, number>;
  isRunning: boolean;
  isStopped: boolean;
}

export function createRuleReloads(options: RuleReloadsOptions): RuleReloads {
  const state: State = {
    ...options,
    changed: new Map(),
    reading: new Map(),
    addresses: new Map(),
    isRunning: false,
    isStopped: false,
  };
  const { changed, reading, addresses } = state;
  const all = (): Waiting[] => [...changed.values(), ...reading.values()];
  return {
    add: (ruleId, concerned) => add(state, ruleId, concerned.flatMap(concernedAddresses)),
    isPending: (audience) => addresses.size > 0 && audience.some((address) => addresses.has(address)),
    isEmpty: () => changed.size + reading.size === 0,
    async current(audience) {
      const concerning = all().filter((waiting) => audience.some((address) => waiting.addresses.has(address)));
      await Promise.all(concerning.map((waiting) => waiting.read));
    },
    async currentRule(ruleId) {
      await Promise.all([changed.get(ruleId)?.read, reading.get(ruleId)?.read]);
    },
    stop() {
      state.isStopped = true;
      for (const waiting of all()) waiting.end(new Error('stopped'));
    },
  };
}

function add(state: State, ruleId: string, addresses: Iterable<string>): void {
  const waiting = state.changed.get(ruleId) ?? toWaiting();
  state.changed.set(ruleId, waiting);
  for (const address of addresses) {
    if (waiting.addresses.has(address)) continue;
    waiting.addresses.add(address);
    state.addresses.set(address, (state.addresses.get(address) ?? 0) + 1);
  }
  if (state.isRunning) return;
  state.isRunning = true;
  // What changes in one turn of the event loop is read together.
  void clock.nextTurn().then(() => run(state));
}

async function run(state: State): Promise<void> {
  const { changed, reading, log } = state;
  for (let failures = 0; changed.size > 0 && !state.isStopped; ) {
    const ids = [...changed.keys()].slice(0, LIMITS.rulesReadTogether);
    for (const id of ids) {
      reading.set(id, changed.get(id) as Waiting);
      changed.delete(id);
    }
    try {
      await state.read(ids);
      endAll(state);
      failures = 0;
    } catch (error) {
      const failed = [...reading];
      endAll(state, error);
      for (const [id, waiting] of failed) add(state, id, waiting.addresses);
      log.warn({ err: error }, 'failed to read rules that have changed; retrying');
      const pauseMs = backoffMs(++failures, LIMITS.partitionTickMs, LIMITS.databaseRetryPauseMaxMs, clock.random());
      await clock.wait(pauseMs, { ref: false });
    }
  }
  state.isRunning = false;
}

function endAll({ reading, addresses }: State, error?: unknown): void {
  for (const waiting of reading.values()) {
    for (const address of waiting.addresses) {
      const left = (addresses.get(address) ?? 1) - 1;
      if (left === 0) addresses.delete(address);
      else addresses.set(address, left);
    }
    waiting.end(error);
  }
  reading.clear();
}

function toWaiting(): Waiting {
  let end: Waiting['end'] = () => undefined;
  const read = new Promise<void>((resolve, reject) => {
    end = (error) => (error === undefined ? resolve() : reject(error));
  });
  // Where nobody waits for it.
  read.catch(() => undefined);
  return { addresses: new Set(), read, end };
}
