/** Text as people search it. */
import { expect, test } from '@jest/globals';
import { fold } from '../../../src/core/fold.js';

test.each([
  ['Truck 7', 'truck 7'],
  ['Zürich', 'ZURICH'],
  ['Zürich', 'Zu\u0308rich'],
  ['İstanbul', 'istanbul'],
  ['Diyarbakır', 'DIYARBAKIR'],
  ['Straße', 'STRASSE'],
  ['ΟΔΟΣ', 'οδός'],
  ['Łódź', 'łodz'],
  ['ﬁlter', 'FILTER'],
])('finds %s by %s', (one, other) => expect(fold(one)).toBe(fold(other)));

test('tells other letters apart', () => expect(fold('кот')).not.toBe(fold('код')));
