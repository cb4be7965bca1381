/** How much may wait to be stored. */
import { expect, test } from '@jest/globals';
import { createPacketRoom, type PacketRoom, type RoomPlace } from '../../../src/db/packet-room.js';
import { LIMITS } from '../../../src/model/limits.js';

const unavailable = expect.objectContaining({ status: 503, headers: { 'Retry-After': '1' } });

function enter(room: PacketRoom, groupId: string, packets: number, bytes: number): RoomPlace {
  const place = room.enter(groupId, packets);
  place.grow(bytes);
  return place;
}

test('refuses what one group has too many packets of, and nobody else', () => {
  const room = createPacketRoom();
  const first = enter(room, 'a', LIMITS.packetsWaitingPerGroup, 1);
  expect(() => room.enter('a', 1)).toThrow(unavailable);
  enter(room, 'b', LIMITS.packetsWaiting - LIMITS.packetsWaitingPerGroup, 1);
  expect(() => room.enter('c', 1)).toThrow(unavailable);
  first.leave();
  enter(room, 'c', 1, 1);
});

test('refuses what one group has too many bytes of, and nobody else', () => {
  const room = createPacketRoom();
  const first = enter(room, 'a', 1, LIMITS.packetsWaitingBytesPerGroup);
  const place = room.enter('a', 1);
  expect(() => place.grow(1)).toThrow(unavailable);
  enter(room, 'b', 1, LIMITS.packetsWaitingBytes - LIMITS.packetsWaitingBytesPerGroup);
  const other = room.enter('c', 1);
  expect(() => other.grow(1)).toThrow(unavailable);
  first.leave();
  place.grow(1);
});

test('never refuses the only ones, however many they are', () => {
  const room = createPacketRoom();
  enter(room, 'a', 10 * LIMITS.packetsWaiting, 10 * LIMITS.packetsWaitingBytes).leave();
  enter(room, 'b', 1, 1);
});

test('remembers whose wait when it drops the groups of which none do', () => {
  const room = createPacketRoom();
  enter(room, 'a', LIMITS.packetsWaitingPerGroup, 1);
  for (let nth = 0; nth < 3 * LIMITS.idleCallers; nth++) enter(room, `group ${nth}`, 1, 1).leave();
  expect(() => room.enter('a', 1)).toThrow(unavailable);
});
