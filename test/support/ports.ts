import { randomInt } from 'node:crypto';
import { isFreePort } from '../../src/db/embedded/instance.js';

/** A port of this machine at which no process listens. */
export async function findFreePort(): Promise<number> {
  for (;;) {
    // Below the ports that systems hand out to clients: one of those must not sit on it while a server is away.
    const port = randomInt(21_000, 32_000);
    if (await isFreePort(port)) return port;
  }
}
