/** Search ignores case and accents as people do, in the console by folding and in the database by a pattern, with equal results. */
import { describe, expect, test } from '@jest/globals';
import { fold } from '../../../src/core/fold.js';
import { searchPattern } from '../../../src/core/search-pattern.js';
import { fc } from '../../support/runs.js';

const isInPattern = (wanted: string, text: string): boolean =>
  new RegExp(searchPattern(wanted) ?? '(?!)', 'u').test(text);

describe('finds texts that differ only in case and accents', () => {
  test.each([
    ['istanbul', 'İstanbul'],
    ['İSTANBUL', 'istanbul'],
    ['ISTANBUL', 'ıstanbul'],
    ['ısparta', 'ISPARTA'],
    ['diyarbakir', 'Diyarbakır'],
    ['zurich', 'Zürich'],
    ['ZÜRICH', 'Zurich'],
    ['Zu\u0308rich', 'Zürich'],
    ['hauptstrasse', 'Hauptstraße'],
    ['STRAẞE', 'Strasse'],
    ['straße', 'STRASSE 7'],
    ['stras', 'Straße'],
    ['se 7', 'Straße 7'],
    ['malmo', 'Malmö'],
    ['odegard', 'Ødegård'],
    ['lodz', 'Łódź'],
    ['aero', 'Ærø'],
    ['dakar', 'Ðakar'],
    ['ha noi', 'Hà Nội'],
    ['οδος', 'ΟΔΌΣ'],
    ['елка', 'Ёлка'],
    ['truck 7', 'ＴＲＵＣＫ ７'],
    ['(a.b)*', 'x (A.B)* y'],
    ['サーバ', 'サーバ 1'],
    ['ẞþ', 'ßþ'],
    ['ssssss', 'ßßß'],
  ])('accepts %j for %j', (wanted, text) => {
    for (const form of [text, text.normalize('NFC'), text.normalize('NFD')]) {
      expect([form, fold(form).includes(fold(wanted)), isInPattern(wanted, form)]).toEqual([form, true, true]);
    }
  });
});

test.each([
  ['zurich', 'Zurch'],
  ['か', 'が'],
  ['asb', 'aßb'],
  ['a.b', 'aXb'],
  ['mass', 'mas'],
  ['по', 'no'],
])('refuses %j for %j', (wanted, text) => {
  expect([fold(text).includes(fold(wanted)), isInPattern(wanted, text)]).toEqual([false, false]);
});

test('finds the same by pattern as by folding', () => {
  const letters = fc.constantFrom(...'aäAÀåæıiİIsSßẞſtoøœþh.*[ 7'.split(''), 'u\u0308');
  const text = fc.array(letters, { maxLength: 8 }).map((parts) => parts.join(''));
  const wanted = fc.array(letters, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(''));
  fc.assert(
    fc.property(wanted, text, (some, whole) => isInPattern(some, whole) === fold(whole).includes(fold(some))),
    { numRuns: 20_000 },
  );
});

test.each(['a', 's', 'ae', 'ß', 'ßþ', '\u1ea7', '*'])(
  'has a pattern within the limit of MongoDB for the longest search of %j',
  (text) => {
    for (const letters of [32, 64, 128]) {
      const pattern = searchPattern(text.repeat(letters).slice(0, letters)) ?? '';
      expect(Buffer.byteLength(pattern)).toBeLessThan(32_764);
    }
  },
);

test('has no pattern for accents alone', () => {
  expect(searchPattern('\u0308')).toBeNull();
});
