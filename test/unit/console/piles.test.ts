/** Piles of objects that cover each other on the map. */
import { expect, test } from '@jest/globals';
import { pileUp } from '../../../src/console/map/piles.js';
import { fc } from '../../support/runs.js';

const VIEW = { x: 0.5, y: 0.5, worldPx: 512, widthPx: 800, heightPx: 600 };

/** Places in pixels, as the map has them: from -1 to 1. */
const toPlaces = (pixels: readonly { x: number; y: number }[]): Float32Array =>
  Float32Array.from(pixels.flatMap(({ x, y }) => [(x / VIEW.widthPx) * 2 - 1, 1 - (y / VIEW.heightPx) * 2]));

const pileOf = (pixels: readonly { x: number; y: number }[]) => pileUp(toPlaces(pixels), pixels.length, VIEW);

test('puts objects in one place on one pile, and others on their own', () => {
  const { count, of, first, size } = pileOf([
    { x: 100, y: 100 },
    { x: 400, y: 300 },
    { x: 103, y: 101 },
    { x: 100, y: 107 },
  ]);
  expect(count).toBe(3);
  expect([...of]).toEqual([0, 1, 0, 2]);
  expect([...first.subarray(0, 3)]).toEqual([0, 1, 3]);
  expect([...size.subarray(0, 3)]).toEqual([2, 1, 1]);
});

test('leaves out what is not in the window, but not a marker at its edge', () => {
  const { of } = pileOf([
    { x: -50, y: 300 },
    { x: 400, y: 700 },
    { x: -5, y: 300 },
    { x: 805, y: 605 },
  ]);
  expect([...of]).toEqual([-1, -1, 0, 1]);
});

test('has the same piles wherever the window is', () => {
  const five = Array.from({ length: 5 }, (_, index) => ({ x: index, y: index % 3 }));
  const offset = fc.record({ x: fc.integer({ min: 0, max: 780 }), y: fc.integer({ min: 0, max: 590 }) });
  fc.assert(
    fc.property(offset, (by) => {
      expect(pileOf(five.map(({ x, y }) => ({ x: x + by.x, y: y + by.y }))).count).toBe(1);
    }),
  );
});

test('has each object in the window on the first pile that covers it, and on no other', () => {
  const place = fc.record({ x: fc.integer({ min: 0, max: 60 }), y: fc.integer({ min: 0, max: 60 }) });
  fc.assert(
    fc.property(fc.array(place, { maxLength: 80 }), (pixels) => {
      const { count, of, first, size } = pileOf(pixels);
      const away = (slot: number, other: number): number => {
        const one = pixels[slot];
        const two = pixels[other];
        return Math.hypot((one?.x ?? 0) - (two?.x ?? 0), (one?.y ?? 0) - (two?.y ?? 0));
      };
      for (const [slot, pile] of of.entries()) expect(away(slot, first[pile] ?? -1)).toBeLessThanOrEqual(6.01);
      // Two piles do not begin where one covers the other.
      for (let pile = 0; pile < count; pile++)
        for (let other = 0; other < pile; other++)
          expect(away(first[pile] ?? -1, first[other] ?? -1)).toBeGreaterThan(5.99);
      expect(size.reduce((sum, one) => sum + one, 0)).toBe(pixels.length);
    }),
  );
});
