/** Labels of the map in the language of the reader. */
import { expect, test } from '@jest/globals';
import { labelIn, namedLayersOf, nameIn } from '../../../src/console/map/labels.js';

const GERMAN = nameIn('de');
const inGerman = (...others: string[]) => nameIn('de', others);

test('prefers the language of the reader, then Latin letters, then the name as it is written there', () => {
  expect(GERMAN).toEqual(['coalesce', ['get', 'name:de'], ['get', 'name_de'], ['get', 'name:latin'], ['get', 'name']]);
});

test.each<[string, unknown, unknown?]>([
  ['a name', ['get', 'name']],
  ['a token', '{name}'],
  ['a token of another language', '{name:en}', inGerman('name:en')],
  ['an older token', '{name_en}', inGerman('name_en')],
  ['two scripts', '{name:latin}\n{name:nonlatin}'],
  [
    'languages in turn',
    ['coalesce', ['get', 'name:fr'], ['get', 'name_int'], ['get', 'name']],
    inGerman('name:fr', 'name_int'),
  ],
  [
    'two scripts by a condition',
    [
      'case',
      ['has', 'name:nonlatin'],
      ['concat', ['get', 'name:latin'], '\n', ['get', 'name:nonlatin']],
      ['coalesce', ['get', 'name_en'], ['get', 'name']],
    ],
    inGerman('name_en'),
  ],
])('replaces %s by the name in the language of the reader', (_, text, expected = GERMAN) =>
  expect(labelIn(text, 'de')).toEqual(expected),
);

test.each<[string, unknown]>([
  ['no text', undefined],
  ['a fixed text', 'Harbour'],
  ['the number of a road', ['to-string', ['get', 'ref']]],
  ['the number of a house', '{housenumber}'],
  ['another property', ['get', 'name_of_operator']],
  ['a property in capitals', '{NAME}'],
  ['words that look like a name', ['literal', ['get', 'name']]],
  ['a text that only depends on whether there is a name', ['case', ['has', 'name'], 'named', '']],
])('leaves %s as it is', (_, text) => expect(labelIn(text, 'de')).toBeNull());

test.each<[string, unknown, unknown]>([
  ['a height beside it', ['concat', ['get', 'name'], ' ', ['get', 'ele']], ['concat', GERMAN, ' ', ['get', 'ele']]],
  ['tokens beside it', '{name} ({ref})', ['concat', '', GERMAN, ' (', ['to-string', ['get', 'ref']], ')']],
  [
    'steps of the zoom',
    ['step', ['zoom'], '', 8, ['get', 'name:en'], 12, ['get', 'name']],
    ['step', ['zoom'], '', 8, inGerman('name:en'), 12, GERMAN],
  ],
  [
    'older steps of the zoom',
    {
      stops: [
        [2, ' '],
        [8, '{name}'],
      ],
    },
    ['step', ['zoom'], ['concat', ' '], 8, GERMAN],
  ],
  ['capitals', ['upcase', ['get', 'name']], ['upcase', GERMAN]],
  [
    'the formats of its parts',
    ['format', ['get', 'name:latin'], { 'font-scale': 1.2 }, ['get', 'name:nonlatin'], {}],
    ['format', GERMAN, { 'font-scale': 1.2 }, '', {}],
  ],
  [
    'conditions on names',
    ['case', ['==', ['get', 'name'], 'x'], ['get', 'ref'], ['get', 'name']],
    ['case', ['==', ['get', 'name'], 'x'], ['get', 'ref'], GERMAN],
  ],
  [
    'a choice by kind',
    ['match', ['get', 'class'], 'peak', ['concat', ['get', 'name'], ['get', 'ele']], ['get', 'name']],
    ['match', ['get', 'class'], 'peak', ['concat', GERMAN, ['get', 'ele']], GERMAN],
  ],
])('keeps %s', (_, text, expected) => expect(labelIn(text, 'de')).toEqual(expected));

test('finds the layers of a style that show names', () => {
  const layers = [
    { id: 'ground', type: 'background' },
    { id: 'towns', type: 'symbol', source: 's', layout: { 'text-field': '{name}' } },
    { id: 'shields', type: 'symbol', source: 's', layout: { 'text-field': '{ref}' } },
    { id: 'icons', type: 'symbol', source: 's' },
  ];
  expect([...namedLayersOf({ layers: layers as never })]).toEqual([['towns', '{name}']]);
});
