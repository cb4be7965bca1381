/** How much may wait to be stored. */
import { expect, test } from '@jest/globals';
import { LIMITS } from '../../../src/core/limits.js';
import { createPendingPackets, type PendingPackets, type PendingRequest } from '../../../src/packets/pending-bytes.js';

const unavailable = expect.objectContaining({ status: 503, headers: { 'Retry-After': '1' } });

function enter(room: PendingPackets, groupId: string, packets: number, bytes: number): PendingRequest {
  const place = room.add(groupId, packets);
  place.grow(bytes);
  return place;
}

test('refuses a group with too many packets, and no other', () => {
  const room = createPendingPackets();
  const first = enter(room, 'a', LIMITS.packetsWaitingPerGroup, 1);
  expect(() => room.add('a', 1)).toThrow(unavailable);
  enter(room, 'b', LIMITS.packetsWaiting - LIMITS.packetsWaitingPerGroup, 1);
  expect(() => room.add('c', 1)).toThrow(unavailable);
  first.remove();
  enter(room, 'c', 1, 1);
});

test('refuses a group with too many bytes, and no other', () => {
  const room = createPendingPackets();
  const first = enter(room, 'a', 1, LIMITS.packetsWaitingBytesPerGroup);
  const place = room.add('a', 1);
  expect(() => place.grow(1)).toThrow(unavailable);
  enter(room, 'b', 1, LIMITS.packetsWaitingBytes - LIMITS.packetsWaitingBytesPerGroup);
  const other = room.add('c', 1);
  expect(() => other.grow(1)).toThrow(unavailable);
  first.remove();
  place.grow(1);
});

test('never refuses the only waiting request, however large', () => {
  const room = createPendingPackets();
  enter(room, 'a', 10 * LIMITS.packetsWaiting, 10 * LIMITS.packetsWaitingBytes).remove();
  enter(room, 'b', 1, 1);
});

test('remembers waiting groups when it forgets the idle ones', () => {
  const room = createPendingPackets();
  enter(room, 'a', LIMITS.packetsWaitingPerGroup, 1);
  for (let nth = 0; nth < 3 * LIMITS.idleCallers; nth++) enter(room, `group ${nth}`, 1, 1).remove();
  expect(() => room.add('a', 1)).toThrow(unavailable);
});
