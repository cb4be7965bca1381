/** Ports for servers that start later than they are chosen, and may be down for a while. */
import { randomInt } from 'node:crypto';
import { isFreePort } from '../../src/platform/mongo/embedded/instance.js';

/**
 * Below the ports that systems give to clients, and below those from which embedded databases and measurements choose theirs: those
 * could take one while its server is down.
 */
const FIRST = 11_000;
const END = 21_000;
/** Test files that run at the same time choose from different ports. */
const SHARES = 8;
const SHARE = Math.floor((END - FIRST) / SHARES);
const first = FIRST + (Number(process.env.JEST_WORKER_ID ?? 0) % SHARES) * SHARE;
const given = new Set<number>();

/** A free port of this machine that this file has not got before. */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = randomInt(first, first + SHARE);
    if (given.has(port)) continue;
    given.add(port);
    if (await isFreePort(port)) return port;
  }
}
