/** Whether requests are to be sent here: the database answers, its news arrives, and the service is not about to end. */
import { setTimeout as wait } from 'node:timers/promises';
import { LIMITS } from '../model/limits.js';

/** The parts that have to work, once they are there. */
export interface Vitals {
  /** Asks the primary for a sign of life. */
  ping(): Promise<unknown>;
  /** Whether changes of the database arrive. */
  isLive(): boolean;
}

export interface Readiness {
  /** The service has all its parts. */
  opened(vitals: Vitals): void;
  /** The service takes no more work. */
  drain(): void;
  /** Whether all parts work, as far as is known without asking. */
  isOpen(): boolean;
  /** Why no requests are to be sent here; none when they are. */
  findObstacles(): Promise<string[]>;
}

export function createReadiness(): Readiness {
  let vitals: Vitals | null = null;
  let draining = false;
  let asking: Promise<boolean> | null = null;
  // Whoever asks while an answer is awaited shares it.
  const answers = ({ ping }: Vitals): Promise<boolean> => {
    asking ??= answersInTime(ping).finally(() => {
      asking = null;
    });
    return asking;
  };
  return {
    opened(parts) {
      vitals = parts;
    },
    drain() {
      draining = true;
    },
    isOpen: () => !draining && vitals?.isLive() === true,
    async findObstacles() {
      if (draining) return ['the service is stopping'];
      if (vitals === null) return ['the service is starting: the database is awaited'];
      const reasons: string[] = [];
      if (!(await answers(vitals))) reasons.push('the database does not answer');
      if (!vitals.isLive()) reasons.push('the news of the database does not arrive');
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
