/** Readiness: the database pings, its changes arrive, and the service is not about to stop. */
import { setTimeout as wait } from 'node:timers/promises';
import { LIMITS } from '../../core/limits.js';

/** Checks of the components that have to work. */
export interface HealthChecks {
  /** Pings the primary. */
  ping(): Promise<unknown>;
  /** Whether the change stream delivers. */
  isLive(): boolean;
}

export interface Readiness {
  /** Called when the service accepts requests. */
  opened(healthChecks: HealthChecks): void;
  /** Called before the service stops. */
  drain(): void;
  /** Whether all components work, as far as is known without a ping. */
  isOpen(): boolean;
  /** Reasons why this instance should not get requests; empty when it is ready. */
  findObstacles(): Promise<string[]>;
}

export function createReadiness(): Readiness {
  let healthChecks: HealthChecks | null = null;
  let draining = false;
  let pending: Promise<boolean> | null = null;
  // Concurrent calls share one ping.
  const pings = ({ ping }: HealthChecks): Promise<boolean> => {
    pending ??= answersInTime(ping).finally(() => {
      pending = null;
    });
    return pending;
  };
  return {
    opened(deps) {
      healthChecks = deps;
    },
    drain() {
      draining = true;
    },
    isOpen: () => !draining && healthChecks?.isLive() === true,
    async findObstacles() {
      if (draining) return ['the service is stopping'];
      if (healthChecks === null) return ['the service is starting: it waits for the database'];
      const reasons: string[] = [];
      if (!(await pings(healthChecks))) reasons.push('the database does not answer');
      if (!healthChecks.isLive()) reasons.push('changes of the database do not arrive');
      return reasons;
    },
  };
}

async function answersInTime(ping: () => Promise<unknown>): Promise<boolean> {
  const timer = new AbortController();
  const late = wait(LIMITS.readyPingMs, false, { signal: timer.signal }).catch(() => false);
  const pong = ping().then(
    () => true,
    () => false,
  );
  return Promise.race([pong, late]).finally(() => timer.abort());
}
