/** How far the clock of the server is ahead of that of the browser. */
import { expect, test } from '@jest/globals';
import { clampOffset } from '../../../src/console/state/clock-offset.js';

test.each([
  ['an offset that may be right', 0, { leastMs: -400, mostMs: 700 }, 0],
  ['the least one for a browser whose clock is slow', 0, { leastMs: 419_000, mostMs: 420_100 }, 419_000],
  ['the greatest one for a browser whose clock is fast', 0, { leastMs: -421_000, mostMs: -419_900 }, -419_900],
  ['the time of a packet that is ahead of it', 419_000, { leastMs: 419_800 }, 419_800],
  ['the known one when a packet comes late', 419_000, { leastMs: -3_600_000 }, 419_000],
])('takes %s', (_, offsetMs, bounds, expected) => expect(clampOffset(offsetMs, bounds)).toBe(expected));
