import { expect, test } from '@jest/globals';
import { weekBefore } from '../../../src/console/objects/days.js';

test.each([
  ['in winter', 0, 15],
  ['after clocks were put forward', 2, 30],
  ['after clocks were put back', 9, 27],
])('takes the same hour of the weekday a week before %s', (_title, month, day) => {
  const then = new Date(2026, month, day, 8, 30);
  expect(new Date(weekBefore(then.getTime()))).toEqual(new Date(2026, month, day - 7, 8, 30));
});
