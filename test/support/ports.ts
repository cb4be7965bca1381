import { randomInt } from 'node:crypto';
import { isFreePort } from '../../src/platform/mongo/embedded/instance.js';

/** A free port of this machine. */
export async function findFreePort(): Promise<number> {
  for (;;) {
    // Below the ports that systems give to clients: those could take it while a server restarts.
    const port = randomInt(21_000, 32_000);
    if (await isFreePort(port)) return port;
  }
}
