/** Since when an object is online or offline. */
import { expect, test } from '@jest/globals';
import { findPresence } from '../../../src/console/objects/presence.js';

const toPackets = (...online: boolean[]) => online.map((one, index) => ({ time: 10 * index, online: one }));

test.each([
  ['the first packet after the last offline one', [true, false, true, true], true, [true, 20, false]],
  ['the first packet after the last online one', [true, true, false], false, [false, 20, false]],
  ['its first packet, if it never was offline', [true, true], true, [true, 0, false]],
  ['at least the first of these packets, if there are others', [true, true], false, [true, 0, true]],
])('begins with %s', (_, online, isWhole, [isOnline, sinceMs, isAtLeast]) => {
  expect(findPresence(toPackets(...online), isWhole)).toEqual({ isOnline, sinceMs, isAtLeast });
});

test('is unknown without packets', () => expect(findPresence([], true)).toBeNull());
