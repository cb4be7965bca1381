/** What an object does, and since when it stands, as its packets tell. */
import { beforeEach, expect, test } from '@jest/globals';
import { activityOf } from '../../../src/console/state/activity.js';
import { forgetMotion, keepMotion, motionOf, stopOf } from '../../../src/console/state/motion.js';
import { findStop } from '../../../src/console/where/stop.js';

type Active = Parameters<typeof activityOf>[0];
type Packet = NonNullable<Active['state']>;

const NOW_MS = 1_700_000_000_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const packet = (agoMs: number, fields: object = {}): Packet => ({
  time: NOW_MS - agoMs,
  online: true,
  ...fields,
});

const objectOf = (state: Packet | undefined, config?: object): Active => ({
  _id: 'a',
  ...(state && { state }),
  ...(config && { config }),
});

beforeEach(() => forgetMotion('a'));

test.each<[string, Packet | undefined, object | undefined]>([
  ['never', undefined, undefined],
  ['offline', packet(0, { online: false, speed: 50 }), undefined],
  ['moving', packet(0, { speed: 1 }), undefined],
  ['moving', packet(10 * MINUTE_MS, { position: { speed: 50 } }), undefined],
  ['silent', packet(10 * MINUTE_MS + 1, { speed: 50 }), undefined],
  ['silent', packet(10 * MINUTE_MS + 1, { speed: 50 }), { offlineAfter: '1 h' }],
  ['standing', packet(0, { speed: 0 }), undefined],
  ['standing', packet(0, { speed: 0.9 }), undefined],
  ['standing', packet(2 * HOUR_MS, { speed: 0 }), undefined],
  ['silent', packet(2 * HOUR_MS + 1, { speed: 0 }), undefined],
  ['standing', packet(30 * HOUR_MS, { speed: 0 }), { offlineAfter: '2 days' }],
  ['reporting', packet(0, { temperature: 4 }), undefined],
  ['reporting', packet(0, { lat: 48, lon: 11 }), undefined],
  ['reporting', packet(0, { speed: '50' }), undefined],
  ['silent', packet(3 * HOUR_MS, { temperature: 4 }), { other: 1 }],
  ['reporting', packet(3 * HOUR_MS, { temperature: 4 }), { offlineAfter: '1 day' }],
])('says %s of %j with %j', (activity, state, config) => {
  expect(activityOf(objectOf(state, config), NOW_MS)).toBe(activity);
});

/** Takes the packets one after the other, as the list does. */
function take(...packets: readonly Packet[]): Active {
  for (const [index, state] of packets.entries()) keepMotion('a', state, packets[index - 1]);
  return objectOf(packets.at(-1));
}

test('keeps the speed of the packet before for ten minutes if a packet has none', () => {
  const moving = packet(12 * MINUTE_MS, { speed: 40, course: 90 });
  expect(motionOf(take(moving, packet(5 * MINUTE_MS, { fuel: 3 })))).toMatchObject({ kmh: 40, course: 90 });
  expect(motionOf(take(moving, packet(5 * MINUTE_MS, { fuel: 3 }), packet(2 * MINUTE_MS, { fuel: 2 })))).toMatchObject({
    kmh: 40,
  });
  expect(motionOf(take(moving, packet(MINUTE_MS, { fuel: 3 })))).toBeNull();
});

test.each<[string, readonly Packet[], number | null]>([
  ['it has moved before', [packet(9, { speed: 40 }), packet(5, { speed: 0 }), packet(1, { speed: 0.5 })], NOW_MS - 5],
  ['values came between', [packet(9, { speed: 40 }), packet(7, { fuel: 1 }), packet(5, { speed: 0 })], NOW_MS - 5],
  ['it was never seen to move', [packet(9, { speed: 0 }), packet(5, { speed: 0 })], null],
  ['it moves again', [packet(9, { speed: 40 }), packet(5, { speed: 0 }), packet(1, { speed: 8 })], null],
])('knows since when an object stands: %s', (_, packets, stoppedMs) => {
  take(...packets);
  expect(stopOf('a')?.timeMs ?? null).toBe(stoppedMs);
});

const standing = (agoMs: number): Packet => packet(agoMs, { speed: 0 });

test.each<[string, readonly Packet[], boolean, ReturnType<typeof stopOf>]>([
  [
    'after it moved',
    [standing(1), standing(5), packet(9, { speed: 3 })],
    false,
    { timeMs: NOW_MS - 5, isAtLeast: false },
  ],
  ['at least since the oldest', [standing(1), standing(5)], false, { timeMs: NOW_MS - 5, isAtLeast: true }],
  ['since its first packet', [standing(1), standing(5)], true, { timeMs: NOW_MS - 5, isAtLeast: false }],
  [
    'beside other values',
    [packet(1, { fuel: 1 }), standing(5), packet(6)],
    true,
    { timeMs: NOW_MS - 5, isAtLeast: false },
  ],
  ['not while it moves', [packet(1, { speed: 3 }), standing(5)], true, null],
  ['not of a sensor', [packet(1, { fuel: 1 })], true, null],
])('finds in the newest packets since when an object stands: %s', (_, packets, isWhole, stop) => {
  expect(findStop(packets, isWhole)).toEqual(stop);
});
